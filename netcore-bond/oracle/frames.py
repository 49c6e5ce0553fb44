"""Varied frames for the bond: every kind that a hash policy treats in its own way, from a seed."""
import random
import struct

u16 = lambda v: struct.pack(">H", v & 0xffff)
u32 = lambda v: struct.pack(">I", v & 0xffffffff)


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def bytes(self, n):
        return bytes(self.r.randrange(256) for _ in range(n))

    def mac(self):
        return bytes([2]) + self.bytes(5)

    def v4(self, protocol, payload, options=b"", fragment=0):
        r = self.r
        head = bytes([0x45 + len(options) // 4, 0]) + u16(20 + len(options) + len(payload)) + self.bytes(2)
        return head + u16(fragment) + bytes([64, protocol, 0, 0]) + bytes([10]) + self.bytes(3) + bytes([192, 168]) + self.bytes(2) + options + payload

    def v6(self, protocol, payload):
        address = lambda: bytes([0x20, 1, 0xd, 0xb8]) + self.bytes(12)
        label = self.r.choice([0, self.r.randrange(1 << 20)])
        return u32(0x60000000 | label) + u16(len(payload)) + bytes([protocol, 64]) + address() + address() + payload

    def ports(self, rest=16):
        return self.bytes(4) + bytes(rest)

    def tcp(self):
        return self.ports(8) + bytes([0x50, 0x10]) + bytes(6) + bytes(8)

    def udp(self, payload=b"", port=None):
        destination = u16(port) if port else self.bytes(2)
        return self.bytes(2) + destination + u16(8 + len(payload)) + bytes(2) + payload

    def extension(self, following, units=0):
        return bytes([following, units]) + bytes([1, 4 + 8 * units]) + bytes(4 + 8 * units)

    def gre(self, protocol, flags=0, payload=b""):
        body = u16(flags) + u16(protocol)
        body += bytes(4) if flags & 0xc000 else b""
        body += self.bytes(4) if flags & 0x2000 else b""
        body += bytes(4) if flags & 0x1000 else b""
        body += bytes(4) if flags & 0x0080 else b""
        return body + payload

    def ethernet(self, ethertype, payload, destination=None):
        return (destination or self.mac()) + self.mac() + u16(ethertype) + payload

    def kinds(self):
        r = self.r
        e4 = lambda p: self.ethernet(0x800, p)
        e6 = lambda p: self.ethernet(0x86dd, p)
        inner = lambda: r.choice([lambda: self.v4(6, self.tcp()), lambda: self.v4(17, self.udp(b"x" * 8))])()
        return {
            "tcp4": lambda: e4(self.v4(6, self.tcp())),
            "udp4": lambda: e4(self.v4(17, self.udp(b"payload"))),
            "even_ports": lambda: e4(self.v4(17, u16(2 * r.randrange(30000)) + u16(2 * r.randrange(30000)) + bytes(12))),
            "sctp4": lambda: e4(self.v4(132, self.ports())),
            "dccp4": lambda: e4(self.v4(33, self.ports())),
            "udplite4": lambda: e4(self.v4(136, self.ports())),
            "esp4": lambda: e4(self.v4(50, self.ports())),
            "ah4": lambda: e4(self.v4(51, bytes([6, 4, 0, 0]) + self.ports())),
            "other4": lambda: e4(self.v4(r.choice([2, 89, 103, 112, 253]), self.ports())),
            "options4": lambda: e4(self.v4(6, self.tcp(), options=bytes([1] * 4 * r.randrange(1, 10)))),
            "fragment4_first": lambda: e4(self.v4(17, self.udp(b"first...") , fragment=0x2000)),
            "fragment4_later": lambda: e4(self.v4(17, self.ports(), fragment=r.randrange(1, 0x1fff))),
            "echo4": lambda: e4(self.v4(1, bytes([r.choice([0, 8, 13, 14]), r.randrange(3), 0, 0]) + r.choice([bytes(2), self.bytes(2)]) + bytes(10))),
            "icmp4_plain": lambda: e4(self.v4(1, bytes([r.choice([9, 10, 15, 17, 18]), 0, 0, 0]) + self.bytes(4) + bytes(12))),
            "error4": lambda: e4(self.v4(1, bytes([r.choice([3, 4, 5, 11, 12]), 1, 0, 0]) + bytes(4) + self.v4(r.choice([6, 17, 1]), self.ports()))),
            "error4_cut": lambda: e4(self.v4(1, bytes([3, 1, 0, 0]) + self.bytes(r.randrange(4, 20)))),
            "tcp6": lambda: e6(self.v6(6, self.tcp())),
            "udp6": lambda: e6(self.v6(17, self.udp(b"payload"))),
            "hop6": lambda: e6(self.v6(0, self.extension(17) + self.udp(b"payload"))),
            "options6": lambda: e6(self.v6(60, self.extension(43, 1) + self.extension(6) + self.tcp())),
            "fragment6": lambda: e6(self.v6(44, bytes([17, 0]) + u16(r.choice([1, 8 * r.randrange(1, 99) + 1])) + self.bytes(4) + self.udp(b"payload"))),
            "echo6": lambda: e6(self.v6(58, bytes([r.choice([128, 129]), 0, 0, 0]) + self.bytes(4) + bytes(8))),
            "neighbour6": lambda: e6(self.v6(58, bytes([r.choice([133, 134, 135, 136]), 0, 0, 0]) + bytes(4) + self.bytes(16))),
            "error6": lambda: e6(self.v6(58, bytes([r.choice([1, 2, 3, 4]), 0, 0, 0]) + bytes(4) + self.v6(r.choice([6, 17]), self.ports()))),
            "arp": lambda: self.ethernet(0x806, u16(1) + u16(0x800) + bytes([6, 4]) + u16(r.choice([1, 2])) + self.bytes(20)),
            "multicast4": lambda: self.ethernet(0x800, self.v4(17, self.udp(b"group")), destination=bytes([1, 0, 0x5e]) + self.bytes(3)),
            "type": lambda: self.ethernet(r.choice([0x88b5, 0x88cc, 0x8137, 0x0842, 0x88f7, 0x8902]), self.bytes(30)),
            "length": lambda: self.ethernet(r.randrange(40, 200), self.bytes(40)),
            "mpls": lambda: self.ethernet(0x8847, self.bytes(4) + self.v4(6, self.tcp())),
            "vlan": lambda: self.ethernet(0x8100, u16(r.randrange(1, 4095)) + u16(0x800) + self.v4(6, self.tcp())),
            "qinq": lambda: self.ethernet(0x88a8, u16(r.randrange(1, 4095)) + u16(0x8100) + u16(7) + u16(0x800) + self.v4(6, self.tcp())),
            "vxlan": lambda: e4(self.v4(17, self.udp(bytes([8]) + bytes(3) + self.bytes(3) + bytes(1) + e4(inner()), 4789))),
            "geneve": lambda: e4(self.v4(17, self.udp(u16(0) + u16(0x6558) + self.bytes(3) + bytes(1) + e4(inner()), 6081))),
            "ipip": lambda: e4(self.v4(4, inner())),
            "sit": lambda: e4(self.v4(41, self.v6(r.choice([6, 17]), self.ports()))),
            "ip4ip6": lambda: e6(self.v6(4, inner())),
            "ip6ip6": lambda: e6(self.v6(41, self.v6(17, self.ports()))),
            "gre": lambda: e4(self.v4(47, self.gre(0x800, r.choice([0, 0x8000, 0x2000, 0x1000, 0xb000]), inner()))),
            "gre6": lambda: e6(self.v6(47, self.gre(0x86dd, 0x2000, self.v6(6, self.tcp())))),
            "gretap": lambda: e4(self.v4(47, self.gre(0x6558, r.choice([0, 0x2000]), e4(inner())))),
            "gretap_arp": lambda: e4(self.v4(47, self.gre(0x6558, 0, self.ethernet(0x806, self.bytes(28))))),
            "gre_routing": lambda: e4(self.v4(47, self.gre(0x800, 0x4000, inner()))),
            "gre_other": lambda: e4(self.v4(47, self.gre(r.choice([0x2000, 0x8909]), 0, self.bytes(24)))),
            "pptp": lambda: e4(self.v4(47, self.gre(0x880b, 0x2001 | r.choice([0, 0x1000, 0x80]), bytes([0xff, 3]) + u16(r.choice([0x21, 0x21, 0xc021])) + inner()))),
            "pppoe4": lambda: self.ethernet(0x8864, bytes([0x11, 0]) + self.bytes(2) + u16(60) + u16(0x21) + inner()),
            "pppoe6": lambda: self.ethernet(0x8864, bytes([0x11, 0]) + self.bytes(2) + u16(60) + u16(0x57) + self.v6(17, self.ports())),
            "pppoe_lcp": lambda: self.ethernet(0x8864, bytes([0x11, 0]) + self.bytes(2) + u16(20) + u16(0xc021) + self.bytes(18)),
            "tunnels": lambda: e4(self.v4(47, self.gre(0x6558, 0, self.ethernet(0x8100, u16(5) + u16(0x800) + self.v4(4, self.v4(6, self.tcp())))))),
            "fragment_in_gre": lambda: e4(self.v4(47, self.gre(0x800, 0, self.v4(17, self.ports(), fragment=0x2000)))),
            "cut": lambda: r.choice([e4, e6])(r.choice([self.v4(6, b""), self.v6(6, b"")])[: r.randrange(4, 20)]),
        }

    def frames(self, count):
        """(kind, via, priority, frame): via 0 is the bond itself, else a VLAN device over it."""
        kinds = self.kinds()
        names = list(kinds)
        for n in range(count):
            kind = names[n % len(names)]
            via, priority = 0, 0
            # A VLAN device writes its tag into frames with MPLS.
            if kind not in ("vlan", "qinq", "mpls") and self.r.random() < 0.25:
                via, priority = self.r.choice([5, 100]), self.r.choice([0, 3, 6])
            yield kind, via, priority, kinds[kind]() + u32(0xb04d0000 | n)
