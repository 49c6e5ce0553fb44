/* ask FRAMES LABEL PEER...: sends every frame of FRAMES through a bond of the guest and says on which peer it came out.
 *
 * FRAMES: records of "via" (one byte: 0 for bond0, else the VLAN device bond0.VIA), "priority" (one byte), length (two bytes,
 * little endian) and the frame, whose last four bytes are its number. One line "LABEL <digit per frame>" is printed; '-' is a
 * frame that no peer received. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int packet_socket(const char *device, int receive)
{
	int s = socket(AF_PACKET, SOCK_RAW, receive ? htons(ETH_P_ALL) : 0);
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = receive ? htons(ETH_P_ALL) : 0 };
	int size = 1 << 20;

	a.sll_ifindex = if_nametoindex(device);
	if (s < 0 || !a.sll_ifindex || bind(s, (struct sockaddr *)&a, sizeof a)) {
		fprintf(stderr, "%s: %s\n", device, strerror(errno));
		exit(1);
	}
	setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	return s;
}

int main(int argc, char **argv)
{
	unsigned char head[4], frame[2048], got[2048];
	int peers = argc - 3, via[4096];
	struct pollfd p[16];
	FILE *f = fopen(argv[1], "rb");

	if (!f || peers < 1 || peers > 16)
		return 1;
	for (int i = 0; i < 4096; i++)
		via[i] = -1;
	for (int i = 0; i < peers; i++)
		p[i] = (struct pollfd){ .fd = packet_socket(argv[3 + i], 1), .events = POLLIN };
	printf("%s ", argv[2]);
	while (fread(head, 1, 4, f) == 4) {
		int len = head[2] | head[3] << 8, answer = -1, priority = head[1];

		if (len < 18 || len > (int)sizeof frame || fread(frame, 1, len, f) != (size_t)len)
			return 1;
		if (via[head[0]] < 0) {
			char name[IFNAMSIZ] = "bond0";

			if (head[0])
				snprintf(name, sizeof name, "bond0.%d", head[0]);
			via[head[0]] = packet_socket(name, 0);
		}
		setsockopt(via[head[0]], SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
		if (send(via[head[0]], frame, len, 0) != len)
			fprintf(stderr, "send of %d: %s\n", len, strerror(errno));
		for (int tries = 0; answer < 0 && tries < 20; tries++) {
			if (poll(p, peers, tries ? 5 : 0) <= 0)
				continue;
			for (int i = 0; i < peers; i++) {
				struct sockaddr_ll from;
				socklen_t l = sizeof from;
				int n;

				if (!(p[i].revents & POLLIN))
					continue;
				n = recvfrom(p[i].fd, got, sizeof got, MSG_DONTWAIT, (struct sockaddr *)&from, &l);
				if (n >= 18 && from.sll_pkttype != PACKET_OUTGOING && !memcmp(got + n - 4, frame + len - 4, 4))
					answer = i;
			}
		}
		putchar(answer < 0 ? '-' : '0' + answer);
	}
	putchar('\n');
	return 0;
}
