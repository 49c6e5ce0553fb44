#!/usr/bin/env python3
"""Asks a real Linux bond which member it sends each of many varied frames to, and records the answers as a fixture.

    record.py KERNEL MODULES BUSYBOX OUT [--frames N] [--seed S]

KERNEL is an uncompressed or bzImage kernel, MODULES its module folder (…/lib/modules/RELEASE), BUSYBOX a static busybox; README.md
says how to get them. Written into OUT: bond_frames.pcap, bond_members.csv, bond_options.txt. Needs qemu-system-x86_64, gcc and ip.
"""
import argparse
import gzip
import lzma
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from frames import Maker

HERE = pathlib.Path(__file__).parent


def initramfs(files):
    """A gzipped cpio archive of {path: (mode, bytes)}."""
    out, inode = bytearray(), 0

    def entry(name, mode, data=b"", device=(0, 0)):
        nonlocal inode
        inode += 1
        name = name.encode() + b"\0"
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        out.extend(b"070701" + "".join("%08X" % f for f in fields).encode() + name)
        out.extend(b"\0" * (-len(out) % 4) + data)
        out.extend(b"\0" * (-len(out) % 4))

    folders = {"proc", "sys", "dev", "bin", "mod", "tmp"}
    for path in files:
        folders.update(str(p) for p in pathlib.PurePath(path).parents if str(p) != ".")
    for folder in sorted(folders):
        entry(folder, 0o40755)
    entry("dev/console", 0o20600, device=(5, 1))
    for path, (mode, data) in files.items():
        entry(path, mode, data)
    entry("TRAILER!!!", 0)
    return gzip.compress(bytes(out), 1)


def modules(folder, wanted):
    """Modules and what they depend on, in loading order."""
    found = {}
    for path in pathlib.Path(folder).rglob("*.ko*"):
        found[re.sub(r"\.ko.*", "", path.name).replace("-", "_")] = path
    order = {}

    def add(name):
        if name in order or name not in found:
            return
        data = found[name].read_bytes()
        data = lzma.decompress(data) if found[name].suffix == ".xz" else data
        depends = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in depends.group(1).decode().split(",") if depends else []:
            add(other.replace("-", "_"))
        order[name] = data

    for name in wanted:
        add(name)
    return order


def program(path):
    """A dynamically linked program and its libraries."""
    files = {"usr/sbin/" + os.path.basename(path): (0o100755, pathlib.Path(path).read_bytes())}
    for line in subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.splitlines():
        library = re.search(r"(/\S+)", line)
        if library:
            files[library.group(1).lstrip("/")] = (0o100755, pathlib.Path(library.group(1)).read_bytes())
    return files


def main():
    parser = argparse.ArgumentParser()
    for name in ("kernel", "modules", "busybox", "out"):
        parser.add_argument(name)
    parser.add_argument("--frames", type=int, default=1248)
    parser.add_argument("--seed", type=int, default=7)
    a = parser.parse_args()
    frames = list(Maker(a.seed).frames(a.frames))
    with tempfile.TemporaryDirectory() as work:
        ask = os.path.join(work, "ask")
        subprocess.run(["gcc", "-O2", "-static", "-o", ask, HERE / "ask.c"], check=True)
        loaded = modules(a.modules, ["bonding", "veth", "8021q"])
        files = {
            "init": (0o100755, (HERE / "init").read_bytes()),
            "settings": (0o100644, (HERE / "settings").read_bytes()),
            "bin/busybox": (0o100755, pathlib.Path(a.busybox).read_bytes()),
            "bin/ask": (0o100755, pathlib.Path(ask).read_bytes()),
            "frames": (0o100644, b"".join(struct.pack("<BBH", v, p, len(f)) + f for _, v, p, f in frames)),
            "modules.list": (0o100644, "\n".join(loaded).encode() + b"\n"),
        }
        files.update({f"mod/{name}.ko": (0o100644, data) for name, data in loaded.items()})
        files.update(program("/usr/sbin/ip"))
        initrd = os.path.join(work, "initrd.gz")
        pathlib.Path(initrd).write_bytes(initramfs(files))
        command = ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg", "-m", "512", "-nodefaults", "-display", "none",
                   "-serial", "stdio", "-no-reboot", "-kernel", a.kernel, "-initrd", initrd,
                   "-append", "console=ttyS0 quiet panic=-1"]
        text = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=900).stdout
    if os.environ.get("CONSOLE"):
        pathlib.Path(os.environ["CONSOLE"]).write_text(text)
    lines = [line.rstrip() for line in text.splitlines()]
    if "ORACLE-DONE" not in lines:
        sys.exit(text[-4000:] + "\nthe guest did not finish")
    answers = dict(line.split()[1:3] for line in lines if line.startswith("ANSWER "))
    out = pathlib.Path(a.out)
    with open(out / "bond_frames.pcap", "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for n, (_, _, _, frame) in enumerate(frames):
            f.write(struct.pack("<IIII", 0, n, len(frame), len(frame)) + frame)
    with open(out / "bond_members.csv", "w") as f:
        print("frame,kind,tci," + ",".join(answers), file=f)
        for n, (kind, via, priority, _) in enumerate(frames):
            tci = str(via | priority << 13) if via else ""
            print(f"{n + 1},{kind},{tci}," + ",".join(answer[n] for answer in answers.values()), file=f)
    (out / "bond_options.txt").write_text(
        "\n".join(line for line in lines if line.split(" ")[0] in ("KERNEL", "OPTION", "IP", "SET")) + "\n")
    print(next(line for line in lines if line.startswith("KERNEL")), len(frames), "frames", len(answers), "columns")


main()
