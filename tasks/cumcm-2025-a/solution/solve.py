# tbmm-canary-7f1c2e9a-53d4-4c0e-9b86-1a0d5e8f2b47
"""Smoke screen (CUMCM 2025 A): plans for questions 2 to 5 by its own search, and question 1 by close evaluation.

A point of the target is hidden when the segment from the missile to it meets the cloud; both rims are tested at evenly
spaced points, after a test of the middle that throws out most moments at once. A bomb is described by the time at which
its cloud lies on the line of sight, a height above that line and a shift along the flight; heading, speed and that time
fix burst and fuse. One drone's plan is proposed from a random scan (greedy choice among true hidden stretches) and
improved by random steps of many sizes; question 5 improves drone after drone, from several starts, on two processes.
"""

import argparse
import json
import math
import multiprocessing
import time
from pathlib import Path

import numpy as np
from numba import njit

G = 9.8
TX, TY, RADIUS, HEIGHT, CLOUD, LIFE, SINK, VMIN, VMAX, GAP, SPEED = range(11)
MOST = 32  # intervals kept for one missile


@njit
def meets(px, py, pz, qx, qy, qz, cx, cy, cz, r2):
    """Whether the segment from p to q meets the ball around c."""
    ux, uy, uz = qx - px, qy - py, qz - pz
    wx, wy, wz = cx - px, cy - py, cz - pz
    along = ux * wx + uy * wy + uz * wz
    if along <= 0.0:
        return wx * wx + wy * wy + wz * wz <= r2
    uu = ux * ux + uy * uy + uz * uz
    if along >= uu:
        return (qx - cx) ** 2 + (qy - cy) ** 2 + (qz - cz) ** 2 <= r2
    ax, ay, az = uy * wz - uz * wy, uz * wx - ux * wz, ux * wy - uy * wx
    return ax * ax + ay * ay + az * az <= r2 * uu


@njit
def blocked(t, bx, by, bz, te, start, unit, s, ring, middle_only):
    """Whether the cloud of a burst hides the middle (or all) of the target at a time."""
    px, py, pz = start[0] + unit[0] * t, start[1] + unit[1] * t, start[2] + unit[2] * t
    cz = bz - s[SINK] * (t - te)
    r2 = s[CLOUD] ** 2
    if (px - bx) ** 2 + (py - by) ** 2 + (pz - cz) ** 2 <= r2:
        return True
    if not meets(px, py, pz, s[TX], s[TY], 0.5 * s[HEIGHT], bx, by, cz, r2):
        return False
    if middle_only:
        return True
    for k in range(ring.shape[0]):
        qx, qy = s[TX] + s[RADIUS] * ring[k, 0], s[TY] + s[RADIUS] * ring[k, 1]
        if not meets(px, py, pz, qx, qy, s[HEIGHT], bx, by, cz, r2):
            return False
        if not meets(px, py, pz, qx, qy, 0.0, bx, by, cz, r2):
            return False
    return True


@njit
def stretch(bx, by, bz, te, start, unit, arrival, s, ring, step):
    """The longest hidden stretch that a scan with a step finds, ends closed in by halving."""
    end = min(te + s[LIFE], arrival)
    best_a, best_b = 0.0, 0.0
    if end <= te:
        return best_a, best_b
    n = int(math.ceil((end - te) / step))
    h = (end - te) / n
    was, a = False, te
    for i in range(n + 1):
        t = te + h * i
        now = blocked(t, bx, by, bz, te, start, unit, s, ring, True) and blocked(
            t, bx, by, bz, te, start, unit, s, ring, False
        )
        if now != was:
            if i == 0:
                edge = te
            else:
                low, high = t - h, t
                for _ in range(24):
                    mid = 0.5 * (low + high)
                    if blocked(mid, bx, by, bz, te, start, unit, s, ring, False) == was:
                        low = mid
                    else:
                        high = mid
                edge = low if was else high
            if now:
                a = edge
            elif edge - a > best_b - best_a:
                best_a, best_b = a, edge
            was = now
    if was and end - a > best_b - best_a:
        best_a, best_b = a, end
    return best_a, best_b


@njit
def bomb_at(drone, heading, speed, t, up, shift, start, unit, s):
    """Burst time and fuse that put the cloud `up` above the line of sight at t, `shift` s late; fuse < 0: none."""
    px, py, pz = start[0] + unit[0] * t, start[1] + unit[1] * t, start[2] + unit[2] * t
    lx, ly, lz = s[TX] - px, s[TY] - py, 0.5 * s[HEIGHT] - pz
    ex, ey = math.cos(heading), math.sin(heading)
    det = lx * ey - ly * ex
    if abs(det) < 1e-9:
        return 0.0, -1.0
    dx, dy = drone[0] - px, drone[1] - py
    share = (dx * ey - dy * ex) / det
    run = (dx * ly - dy * lx) / det
    te = run / speed + shift
    z = pz + share * lz + up + s[SINK] * (t - te)
    if share <= 0.0 or share >= 1.0 or run < 0.0 or z < 0.0 or z > drone[2]:
        return 0.0, -1.0
    fuse = math.sqrt(2.0 * (drone[2] - z) / G)
    if fuse > te or te > t + 5.0 or t > te + s[LIFE]:
        return 0.0, -1.0
    return te, fuse


@njit
def union(cover, count, extra, extras):
    """Length of the union of intervals."""
    total = count + extras
    a, b = np.empty(total), np.empty(total)
    for i in range(count):
        a[i], b[i] = cover[i, 0], cover[i, 1]
    for i in range(extras):
        a[count + i], b[count + i] = extra[i, 0], extra[i, 1]
    order = np.argsort(a)
    length, reached = 0.0, -1e9
    for i in order:
        if b[i] > reached:
            length += b[i] - max(a[i], reached)
            reached = b[i]
    return length


@njit
def plan_worth(x, target, drone, starts, units, arrivals, s, ring, step, cover, counts, worst, bursts, fuses, spans):
    """Worth of one drone's plan given what others hide. Fills bursts, fuses (-1: cannot be dropped) and spans."""
    n, missiles = target.shape[0], starts.shape[0]
    for i in range(n):
        m = target[i]
        te, fuse = bomb_at(drone, x[0], x[1], x[2 + 3 * i], x[3 + 3 * i], x[4 + 3 * i], starts[m], units[m], s)
        for j in range(i):
            if fuses[j] >= 0.0 and abs((te - fuse) - (bursts[j] - fuses[j])) < s[GAP] + 3e-6:
                fuse = -1.0
        bursts[i], fuses[i] = te, fuse
    total, least = 0.0, 1e9
    extra = np.empty((n, 2))
    for m in range(missiles):
        for i in range(n):
            extra[i], spans[m, i] = 0.0, 0.0
            if fuses[i] < 0.0:
                continue
            run = x[1] * bursts[i]
            a, b = stretch(
                drone[0] + run * math.cos(x[0]), drone[1] + run * math.sin(x[0]), drone[2] - 0.5 * G * fuses[i] ** 2,
                bursts[i], starts[m], units[m], arrivals[m], s, ring, step,
            )  # fmt: skip
            spans[m, i, 0], spans[m, i, 1] = a, b
            extra[i, 0], extra[i, 1] = a, b
        length = union(cover[m], counts[m], extra, n)
        total += length
        least = min(least, length)
    return total + worst * least


@njit
def way_to_sight(drone, starts, units, arrivals, s):
    """A random heading and speed that lead a drone under or to a line of sight in time; speed < 0: none."""
    m = np.random.randint(starts.shape[0])
    t = np.random.random() * arrivals[m]
    share = np.random.random() ** 0.7
    px, py, pz = starts[m, 0] + units[m, 0] * t, starts[m, 1] + units[m, 1] * t, starts[m, 2] + units[m, 2] * t
    gx, gy = px + share * (s[TX] - px), py + share * (s[TY] - py)
    te = t - np.random.random() * 8.0
    way = math.hypot(gx - drone[0], gy - drone[1])
    if te <= 0.2 or pz * (1 - share) > drone[2] or way > s[VMAX] * te or way < s[VMIN] * te:
        return 0.0, -1.0
    heading, speed = math.atan2(gy - drone[1], gx - drone[0]), way / te
    kind = np.random.random()
    if kind < 0.4:
        speed = s[VMAX]
    elif kind < 0.5:
        speed = s[VMIN] + np.random.random() * (s[VMAX] - s[VMIN])
    return heading, speed


@njit
def crossings(heading, speed, step, drone, starts, units, arrivals, s, ring):
    """Bombs on lines of sight at regular times: rows of time, missile, begin, end, release."""
    rows = np.empty((starts.shape[0] * int(arrivals.max() / step + 1), 5))
    found = 0
    offset = np.random.random() * step
    for m in range(starts.shape[0]):
        for i in range(int(arrivals[m] / step)):
            t = offset + step * i
            te, fuse = bomb_at(drone, heading, speed, t, 0.0, 0.0, starts[m], units[m], s)
            if fuse < 0.0:
                continue
            x, y = drone[0] + speed * te * math.cos(heading), drone[1] + speed * te * math.sin(heading)
            z = drone[2] - 0.5 * G * fuse**2
            a, b = stretch(x, y, z, te, starts[m], units[m], arrivals[m], s, ring, 0.3)
            if b - a > 0.2:
                rows[found] = np.array([t, m, a, b, te - fuse])
                found += 1
    return rows[:found]


@njit
def gain_of(row, rows, picked, used, s, cover, counts):
    """What a bomb hides beyond what is covered and picked already; -1 when it is too close to a picked one."""
    m = int(row[1])
    free = row[3] - row[2]
    for j in range(counts[m]):
        free -= max(0.0, min(row[3], cover[m, j, 1]) - max(row[2], cover[m, j, 0]))
    for j in range(used):
        other = rows[picked[j]]
        if abs(row[4] - other[4]) < s[GAP] + 1e-5:
            return -1.0
        if other[1] == row[1]:
            free -= max(0.0, min(row[3], other[3]) - max(row[2], other[2]))
    return free


@njit
def scan(seed, tries, keep, bombs, drone, starts, units, arrivals, s, ring, cover, counts, worst):
    """The best greedy plans of a drone among random headings and speeds: worth, plans and targets."""
    np.random.seed(seed)
    missiles = starts.shape[0]
    kept, targets, worths = np.zeros((keep, 2 + 3 * bombs)), np.zeros((keep, bombs), np.int64), np.full(keep, -1.0)
    base, none = np.empty(missiles), np.empty((0, 2))
    for m in range(missiles):
        base[m] = union(cover[m], counts[m], none, 0)
    low = np.argmin(base)
    picked = np.empty(bombs, np.int64)
    scanned = 0
    for _ in range(60 * tries):
        if scanned == tries:
            break
        heading, speed = way_to_sight(drone, starts, units, arrivals, s)
        if speed < 0.0:
            continue
        scanned += 1
        rows = crossings(heading, speed, 0.35, drone, starts, units, arrivals, s, ring)
        used, worth = 0, 0.0
        for _ in range(bombs):
            best, most = -1, 0.05
            for i in range(rows.shape[0]):
                gain = gain_of(rows[i], rows, picked, used, s, cover, counts)
                gain *= 1.0 + (worst if rows[i, 1] == low else 0.0)
                if gain > most:
                    best, most = i, gain
            if best < 0:
                break
            picked[used] = best
            used += 1
            worth += most
        slot = np.argmin(worths)
        if used > 0 and worth > worths[slot]:
            worths[slot] = worth
            kept[slot, 0], kept[slot, 1] = heading, speed
            for j in range(bombs):  # what is left over starts anywhere; where it cannot be dropped it is not
                m = int(rows[picked[j], 1]) if j < used else np.random.randint(missiles)
                kept[slot, 2 + 3 * j] = rows[picked[j], 0] if j < used else np.random.random() * arrivals[m]
                kept[slot, 3 + 3 * j], kept[slot, 4 + 3 * j] = 0.0, 0.0
                targets[slot, j] = m
    return worths, kept, targets


@njit
def sight_time(drone, heading, run, start, unit, s):
    """When the line of sight passes over a place on a drone's path."""
    x, y = drone[0] + run * math.cos(heading) - s[TX], drone[1] + run * math.sin(heading) - s[TY]
    px, py = start[0] - s[TX], start[1] - s[TY]
    turn = unit[0] * y - unit[1] * x
    return (py * x - px * y) / turn if abs(turn) > 1e-9 else -1.0


@njit
def improve(seed, rounds, x, target, drone, starts, units, arrivals, s, ring, step, cover, counts, worst):
    """Random steps of many sizes, kept when they are better; some turn the flight and keep the bursts' times."""
    np.random.seed(seed)
    n, missiles = target.shape[0], starts.shape[0]
    bursts, fuses, spans = np.empty(n), np.empty(n), np.empty((missiles, n, 2))
    rest = (target, drone, starts, units, arrivals, s, ring, step, cover, counts, worst, bursts, fuses, spans)
    best = plan_worth(x, *rest)
    x, held = x.copy(), bursts.copy()
    for _ in range(rounds):
        y = x.copy()
        size = 10.0 ** (-3.5 * np.random.random())
        kind = np.random.random()
        share = 0.3 if kind < 0.5 else 0.8
        for i in range(x.shape[0]):
            if np.random.random() > share:
                continue
            scale = 0.07 if i == 0 else 12.0 if i == 1 else 2.0 if i % 3 == 2 else 3.0 if i % 3 == 0 else 0.05
            y[i] += np.random.normal() * size * scale
        y[1] = min(max(y[1], s[VMIN]), s[VMAX])
        if np.random.random() < 0.4:
            for i in range(n):
                te = held[i] - x[4 + 3 * i] + (y[2 + 3 * i] - x[2 + 3 * i])
                m = target[i]
                y[2 + 3 * i] = sight_time(drone, y[0], y[1] * te, starts[m], units[m], s)
        worth = plan_worth(y, *rest)
        if worth > best:
            best, x, held = worth, y, bursts.copy()
    plan_worth(x, *rest)
    return best, x, bursts, fuses, spans


def ring_of(count):
    """Points of the unit circle."""
    angle = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


class Problem:
    """One instance, packed for the compiled parts."""

    def __init__(self, p):
        self.drones = np.array(p["drones_m"], dtype=float)
        self.starts = np.array(p["missiles_m"], dtype=float)
        far = np.linalg.norm(self.starts, axis=1)
        self.units = -self.starts / far[:, None] * p["missile_speed_mps"]
        self.arrivals = far / p["missile_speed_mps"]
        self.s = np.array([
            p["target_x_m"], p["target_y_m"], p["target_radius_m"], p["target_height_m"], p["cloud_radius_m"],
            p["cloud_life_s"], p["sink_mps"], p["speed_min_mps"], p["speed_max_mps"], p["release_gap_s"],
            p["missile_speed_mps"],
        ], dtype=float)  # fmt: skip
        self.bombs = p["bombs"]
        self.q4 = [drone - 1 for drone in p["q4_drones"]]


class Search:
    """Plans of some drones against some missiles."""

    def __init__(self, problem, missiles, drones, bombs, seed):
        self.p, self.drones, self.bombs = problem, drones, bombs
        self.starts, self.units, self.arrivals = (
            np.ascontiguousarray(part[:missiles]) for part in (problem.starts, problem.units, problem.arrivals)
        )
        self.random = np.random.default_rng(seed)
        # the worst missile has a third of the sum's weight, and the sum has every missile
        self.worst = missiles / 3.0 if missiles > 1 else 0.0
        self.plans = {}

    def cover(self, without):
        """What all drones but one hide, as padded intervals."""
        missiles = len(self.starts)
        cover, counts = np.zeros((missiles, MOST, 2)), np.zeros(missiles, np.int64)
        for drone, (_, _, _, _, spans) in self.plans.items():
            if drone == without:
                continue
            for m in range(missiles):
                for a, b in spans[m]:
                    if b > a:
                        cover[m, counts[m]] = a, b
                        counts[m] += 1
        for m in range(missiles):  # merged, so that overlaps can be subtracted one by one
            rows = sorted(map(tuple, cover[m, : counts[m]]))
            merged = []
            for a, b in rows:
                if merged and a <= merged[-1][1]:
                    merged[-1][1] = max(merged[-1][1], b)
                else:
                    merged.append([a, b])
            counts[m] = len(merged)
            for i, (a, b) in enumerate(merged):
                cover[m, i] = a, b
        return cover, counts

    def worth(self):
        """Worth of all plans together."""
        cover, counts = self.cover(-1)
        each = [float((cover[m, : counts[m], 1] - cover[m, : counts[m], 0]).sum()) for m in range(len(counts))]
        return sum(each) + self.worst * min(each)

    def seed(self):
        return int(self.random.integers(2**31))

    def renew(self, drone, tries, keep, rounds, finish, ring, step):
        """A new plan for one drone, taken when it is better than its present one."""
        cover, counts = self.cover(drone)
        args = (self.p.drones[drone], self.starts, self.units, self.arrivals, self.p.s, ring)
        rest = (cover, counts, self.worst)
        worths, plans, targets = scan(self.seed(), tries, keep, self.bombs, *args, *rest)
        found = [
            improve(self.seed(), rounds, plans[i], targets[i], *args, step, *rest) + (targets[i],)
            for i in np.argsort(-worths)
            if worths[i] > 0
        ]
        found.sort(key=lambda entry: -entry[0])
        for entry in found[:2]:
            better = improve(self.seed(), finish, entry[1], entry[5], *args, step, *rest)
            self.offer(drone, better, entry[5], args, step, rest)

    def offer(self, drone, result, target, args, step, rest):
        """Take a plan when it is better."""
        if result[0] < 0:
            return
        if drone in self.plans:
            now = improve(0, 0, self.plans[drone][0], self.plans[drone][1], *args, step, *rest)[0]
            if now >= result[0]:
                return
        self.plans[drone] = (result[1], target, result[2], result[3], result[4])

    def polish(self, drone, rounds, ring, step):
        """Improve the present plan of a drone."""
        if drone not in self.plans:
            return
        cover, counts = self.cover(drone)
        args = (self.p.drones[drone], self.starts, self.units, self.arrivals, self.p.s, ring)
        x, target = self.plans[drone][:2]
        result = improve(self.seed(), rounds, x, target, *args, step, cover, counts, self.worst)
        if result[0] > 0:
            self.plans[drone] = (result[1], target, result[2], result[3], result[4])

    def records(self):
        """The plans as they stand in the answer."""
        result = []
        for drone, (x, _, bursts, fuses, _) in sorted(self.plans.items()):
            drops = [(float(te - f), float(f)) for te, f in zip(bursts, fuses, strict=True) if f >= 0.0]
            drops = sorted((max(0.0, at), f) for at, f in drops)
            result.append({
                "drone": drone + 1,
                "heading_deg": round(math.degrees(x[0]) % 360.0, 8),
                "speed_mps": round(float(x[1]), 7),
                "bombs": [{"release_time_s": round(a, 8), "fuse_s": round(f, 8)} for a, f in drops],
            })  # fmt: skip
        return result


COARSE, FINE = ring_of(16), ring_of(96)


def small(problem, drones, bombs, seconds, seed, least=4):
    """Questions 2 to 4: a fresh search for every drone, again and again, then a close polish."""
    search = Search(problem, 1, drones, bombs, seed)
    stop = time.process_time() + seconds
    rounds = 0
    while rounds < least or time.process_time() < stop:
        for drone in drones:
            search.renew(drone, 600, 40 if bombs == 1 else 12, 600 if bombs == 1 else 2000, 5000, COARSE, 0.3)
        rounds += 1
    for _ in range(2):
        for drone in drones:
            search.polish(drone, 2500, FINE, 0.3)
    return search


def large(task):
    """Question 5 from starts with other orders of the drones, until its processor time is up; returns the best."""
    problem, seconds, seed = task
    begin = time.process_time()
    best, best_worth = None, -1.0
    drones = list(range(len(problem.drones)))
    number = 0
    while True:
        search = Search(problem, len(problem.starts), drones, problem.bombs, seed + 1000 * number)
        started = time.process_time()
        last = -1.0
        for sweep in range(12):
            for drone in search.random.permutation(drones).tolist():
                search.renew(drone, 250 if sweep == 0 else 120, 8, 500, 2000, COARSE, 0.4)
                if time.process_time() - begin > 0.8 * seconds:
                    break
            worth = search.worth()
            if worth - last < 0.05 or time.process_time() - begin > 0.8 * seconds:
                break
            last = worth
        if search.worth() > best_worth:
            best, best_worth = search, search.worth()
        number += 1
        if time.process_time() - begin + (time.process_time() - started) > 0.8 * seconds:
            break
    turn = 0
    while turn < 2 or time.process_time() - begin < seconds:
        for drone in drones:
            best.polish(drone, 1500, FINE, 0.4)
        turn += 1
    return best.worth(), best.records()


# ---------------------------------------------------------------- question 1


def depth(problem, q1, t):
    """How far the worst segment from missile 1 to a rim stays inside the cloud's radius, m."""
    s = problem.s
    heading, te = math.radians(q1["heading"]), q1["release"] + q1["fuse"]
    run = q1["speed"] * te
    start = problem.drones[0]
    cloud = np.array([start[0] + run * math.cos(heading), start[1] + run * math.sin(heading),
                      start[2] - 0.5 * G * q1["fuse"] ** 2 - s[SINK] * (t - te)])  # fmt: skip
    missile = problem.starts[0] + problem.units[0] * t

    def distance(angle, z):
        q = np.stack([s[TX] + s[RADIUS] * np.cos(angle), s[TY] + s[RADIUS] * np.sin(angle), z + 0 * angle], axis=-1)
        u, w = q - missile, cloud - missile
        share = np.clip(u @ w / (u * u).sum(axis=-1), 0.0, 1.0)
        return np.linalg.norm(w - share[:, None] * u, axis=-1)

    worst = 0.0
    for z in (0.0, s[HEIGHT]):
        angle, width = np.linspace(0, 2 * np.pi, 361), 2 * np.pi
        for _ in range(7):
            found = distance(angle, z)
            at = angle[found.argmax()]
            width /= 60.0
            angle = np.linspace(at - width, at + width, 121)
        worst = max(worst, float(found.max()))
    return s[CLOUD] - worst


def question1(problem, parameters):
    """Hidden time of the given strategy: a fine scan, ends by halving."""
    q1 = {
        "heading": parameters["q1_heading_deg"], "speed": parameters["q1_speed_mps"],
        "release": parameters["q1_release_s"], "fuse": parameters["q1_fuse_s"],
    }  # fmt: skip
    te = q1["release"] + q1["fuse"]
    end = min(te + problem.s[LIFE], float(problem.arrivals[0]))
    times = np.linspace(te, end, 1201)
    shown = np.array([depth(problem, q1, t) >= 0 for t in times])
    edges = []
    for i in np.flatnonzero(shown[1:] != shown[:-1]):
        low, high = times[i], times[i + 1]
        for _ in range(36):
            mid = 0.5 * (low + high)
            if (depth(problem, q1, mid) >= 0) == shown[i]:
                low = mid
            else:
                high = mid
        edges.append(0.5 * (low + high))
    if shown[0]:
        edges.insert(0, te)
    if shown[-1]:
        edges.append(end)
    return float(sum(b - a for a, b in zip(edges[::2], edges[1::2], strict=True)))


def solve(parameters, seconds, processes):
    """Answer of one instance."""
    problem = Problem(parameters)
    small(problem, [0], 1, 0.0, 1, 1)  # compiles everything before the processes part
    context = multiprocessing.get_context("fork")
    with context.Pool(processes) as pool:
        tasks = [(problem, seconds, 100 + number) for number in range(processes)]
        running = pool.map_async(large, tasks, chunksize=1)
        first = question1(problem, parameters)
        runs = {
            "q2": small(problem, [0], 1, 0.1 * seconds, 2, 12),
            "q3": small(problem, [0], problem.bombs, 0.2 * seconds, 3),
            "q4": small(problem, problem.q4, 1, 0.15 * seconds, 4),
        }
        fifth = max(running.get(), key=lambda entry: entry[0])[1]
    if runs["q2"].worth() > runs["q3"].worth():
        runs["q3"] = runs["q2"]
    return {"q1": {"shield_time_s": first}} | {name: run.records() for name, run in runs.items()} | {"q5": fifth}


def main():
    """Read the instance, write the answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instance", type=Path, default=Path("/task/instance.json"))
    parser.add_argument("--out", type=Path, default=Path("/workspace/answer.json"))
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time of each search of question 5")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    instance = json.loads(options.instance.read_text(encoding="utf-8"))
    answer = solve(instance["parameters"], options.seconds, options.processes)
    options.out.write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
