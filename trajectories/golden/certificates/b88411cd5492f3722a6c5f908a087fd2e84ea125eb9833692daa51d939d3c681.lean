theorem reward : True := True.intro
