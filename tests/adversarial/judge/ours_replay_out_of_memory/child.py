bytearray(1 << 40)
