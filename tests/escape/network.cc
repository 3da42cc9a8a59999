// Attacks by sockets: services of the machine, of the user, and the outside. The stage listens, and says what it heard.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "attacker.h"

namespace bulkhead::escape {
namespace {

constexpr int kMsgFastopen = 0x20000000;

bool IsControl() { return Given("control")[0] == '1'; }
// A kernel without the protocol says so outside, too.
int Family(int family, int type, int protocol, const char* feature) {
  if (socket(family, type | SOCK_CLOEXEC, protocol) >= 0) return Got();
  const bool missing = errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT;
  return IsControl() && missing ? Untried(feature) : Held(errno);
}

sockaddr_in Address(const char* host, const char* port_key) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<in_port_t>(atoi(Given(port_key))));
  inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}
template <typename T>
int Connect(int fd, const T& address, socklen_t length = sizeof(T)) {
  if (fd < 0) return Held(errno);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) return Held(errno);
  // What listens by datagrams hears nothing before.
  return GotIf(send(fd, kEvilMark, strlen(kEvilMark), MSG_NOSIGNAL) > 0);
}

int Tcp() { return Connect(socket(AF_INET, SOCK_STREAM, 0), Address("127.0.0.1", "tcp")); }
int TcpAnyAddress() { return Connect(socket(AF_INET, SOCK_STREAM, 0), Address("0.0.0.0", "tcp")); }
int Tcp6() {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<in_port_t>(atoi(Given("tcp6"))));
  address.sin6_addr = in6addr_loopback;
  if (Given("tcp6")[0] == '\0') return Untried("IPv6");
  return Connect(socket(AF_INET6, SOCK_STREAM, 0), address);
}
int TcpMapped() {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<in_port_t>(atoi(Given("tcp"))));
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr);
  if (Given("tcp6")[0] == '\0') return Untried("IPv6");
  return Connect(socket(AF_INET6, SOCK_STREAM, 0), address);
}
int Mptcp() {
  const int fd = socket(AF_INET, SOCK_STREAM, 262);
  if (fd < 0 && IsControl()) return Untried("IPPROTO_MPTCP (CONFIG_MPTCP)");
  return Connect(fd, Address("127.0.0.1", "tcp"));
}
int FastopenSendto() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = Address("127.0.0.1", "tcp");
  if (fd < 0) return Held(errno);
  return GotIf(sendto(fd, kEvilMark, 4, kMsgFastopen, reinterpret_cast<const sockaddr*>(&address), sizeof address) > 0);
}
int FastopenSendmsg() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Address("127.0.0.1", "tcp");
  char byte = 'x';
  iovec data = {&byte, 1};
  msghdr message = {};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd < 0) return Held(errno);
  return GotIf(sendmsg(fd, &message, kMsgFastopen) > 0);
}
int FastopenSendmmsg() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Address("127.0.0.1", "tcp");
  char byte = 'x';
  iovec data = {&byte, 1};
  mmsghdr message = {};
  message.msg_hdr.msg_name = &address;
  message.msg_hdr.msg_namelen = sizeof address;
  message.msg_hdr.msg_iov = &data;
  message.msg_hdr.msg_iovlen = 1;
  if (fd < 0) return Held(errno);
  return GotIf(sendmmsg(fd, &message, 1, kMsgFastopen) > 0);
}
int Udp() {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  const sockaddr_in address = Address("127.0.0.1", "udp");
  if (fd < 0) return Held(errno);
  return GotIf(sendto(fd, kEvilMark, 4, 0, reinterpret_cast<const sockaddr*>(&address), sizeof address) > 0);
}
int UdpConnected() { return Connect(socket(AF_INET, SOCK_DGRAM, 0), Address("127.0.0.1", "udp")); }
int Sctp() { return Family(AF_INET, SOCK_STREAM, 132, "IPPROTO_SCTP (CONFIG_IP_SCTP)"); }
int SctpSeqpacket() { return Family(AF_INET, SOCK_SEQPACKET, 132, "IPPROTO_SCTP (CONFIG_IP_SCTP)"); }
int Dccp() { return Family(AF_INET, 6 /* SOCK_DCCP */, 33, "IPPROTO_DCCP (before Linux 6.16)"); }
int Smc() { return Family(AF_INET, SOCK_STREAM, 256, "IPPROTO_SMC (CONFIG_SMC)"); }
int SmcFamily() { return Family(43, SOCK_STREAM, 0, "AF_SMC (CONFIG_SMC)"); }
int UdpLite() { return Family(AF_INET, SOCK_DGRAM, 136, "IPPROTO_UDPLITE (before Linux 7.1)"); }
int RawIcmp() { return Family(AF_INET, SOCK_RAW, IPPROTO_ICMP, "raw sockets"); }
int RawIcmp6() { return Family(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, "IPv6"); }
int Packet() { return Family(17, SOCK_RAW, 0, "AF_PACKET (CONFIG_PACKET)"); }
int Vsock() { return Family(40, SOCK_STREAM, 0, "AF_VSOCK (CONFIG_VSOCKETS)"); }
int Alg() { return Family(38, SOCK_SEQPACKET, 0, "AF_ALG (CONFIG_CRYPTO_USER_API)"); }
int Xdp() { return Family(44, SOCK_RAW, 0, "AF_XDP (CONFIG_XDP_SOCKETS)"); }
int KeyManagement() { return Family(15, SOCK_RAW, 2, "AF_KEY (CONFIG_NET_KEY)"); }
int Netfilter() { return Family(AF_NETLINK, SOCK_RAW, 12, "NETLINK_NETFILTER (CONFIG_NETFILTER_NETLINK)"); }
int Audit() { return Family(AF_NETLINK, SOCK_RAW, 9, "NETLINK_AUDIT (CONFIG_AUDIT)"); }
int Uevent() { return Family(AF_NETLINK, SOCK_RAW, 15, "NETLINK_KOBJECT_UEVENT"); }
int SockDiag() { return Family(AF_NETLINK, SOCK_RAW, 4, "NETLINK_SOCK_DIAG (CONFIG_INET_DIAG)"); }
int Xfrm() { return Family(AF_NETLINK, SOCK_RAW, 6, "NETLINK_XFRM (CONFIG_XFRM_USER)"); }
int Generic() { return Family(AF_NETLINK, SOCK_RAW, 16, "NETLINK_GENERIC"); }

// Asks for the machine's interfaces: whether another than loopback is among them.
int ListInterfaces() {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return Held(errno);
  struct {
    nlmsghdr head;
    rtgenmsg body;
  } request = {};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = RTM_GETLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  if (send(fd, &request, sizeof request, 0) < 0) return Held(errno);
  alignas(nlmsghdr) static char answer[65536];
  while (true) {
    ssize_t length = recv(fd, answer, sizeof answer, 0);
    if (length <= 0) return Held(errno);
    for (auto* head = reinterpret_cast<nlmsghdr*>(answer); NLMSG_OK(head, static_cast<unsigned>(length));
         head = NLMSG_NEXT(head, length)) {
      if (head->nlmsg_type == NLMSG_DONE) return IsControl() ? Untried("a network interface") : Held("only loopback");
      if (head->nlmsg_type == NLMSG_ERROR) return Held("NLMSG_ERROR");
      if ((static_cast<ifinfomsg*>(NLMSG_DATA(head))->ifi_flags & IFF_LOOPBACK) == 0) return Got();
    }
  }
}
int TakeLoopbackDown() {
  ifreq request = {};
  strcpy(request.ifr_name, "lo");
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) != 0) return Held(errno);
  return GotIf(ioctl(fd, SIOCSIFFLAGS, &request) == 0);  // the flags that it has
}
int SeeHostsConnections() {
  char port[16];
  snprintf(port, sizeof port, ":%04X ", static_cast<unsigned>(atoi(Given("tcp"))));
  return GotIfReads("/proc/self/net/tcp", port);
}
int SeeHostsUnixSockets() { return GotIfReads("/proc/self/net/unix", Given("abstract")); }
int BindHostsPort() {
  // Beside the host's own listener, to get a part of its clients.
  const int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  if (fd < 0) return Held(errno);
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
  const sockaddr_in address = Address("127.0.0.1", "tcp");
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return Held(errno);
  if (listen(fd, 1) != 0) return Held(errno);
  // A client of the host's: whether it is ours depends on whose loopback this is. The stage's listener has our uid.
  const std::string table = Slurp("/proc/self/net/tcp");
  char port[16];
  snprintf(port, sizeof port, ":%04X ", static_cast<unsigned>(atoi(Given("tcp"))));
  size_t count = 0;
  for (size_t at = table.find(port); at != std::string::npos; at = table.find(port, at + 1)) ++count;
  return count >= 2 ? Got() : Held("another loopback");
}

// A query that leaves the machine. The address is one of those that nobody has (RFC 5737).
int Outside(int type, int protocol, const char* port) {
  sockaddr_in address = Address("203.0.113.53", "");
  address.sin_port = htons(static_cast<in_port_t>(atoi(port)));
  const int fd = socket(AF_INET, type | SOCK_NONBLOCK, protocol);
  if (fd < 0) return Held(errno);
  const char query[] = "\1\2\1\0\0\1\0\0\0\0\0\0\6secret\7example\0\0\1\0\1";
  if (type == SOCK_DGRAM) {
    const bool sent = sendto(fd, query, sizeof query - 1, 0, reinterpret_cast<sockaddr*>(&address), sizeof address) > 0;
    if (!sent && IsControl()) return Untried("a route to the outside");
    return GotIf(sent);
  }
  const bool on_its_way =
      connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 || errno == EINPROGRESS;
  if (!on_its_way && IsControl()) return Untried("a route to the outside");
  return GotIf(on_its_way);
}
int DnsOutside() { return Outside(SOCK_DGRAM, 0, "53"); }
int TcpOutside() { return Outside(SOCK_STREAM, 0, "443"); }
int MetadataAddress() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(80);
  inet_pton(AF_INET, "169.254.169.254", &address.sin_addr);
  // Of a datagram socket: finds the way and sends nothing.
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return Held(errno);
  const bool found = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (!found && IsControl()) return Untried("a route to the outside");
  return GotIf(found);
}

int Unix(int type, const std::string& name, bool abstract = false) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 >= sizeof address.sun_path) return Held(ENAMETOOLONG);
  memcpy(address.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  return Connect(socket(AF_UNIX, type, 0), address,
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1));
}
int UnixStream() { return Unix(SOCK_STREAM, Path("run", "agent.sock")); }
int UnixDatagram() { return Unix(SOCK_DGRAM, Path("run", "log.sock")); }
int UnixSeqpacket() { return Unix(SOCK_SEQPACKET, Path("run", "seq.sock")); }
int DockerSocket() { return Unix(SOCK_STREAM, Path("run", "docker.sock")); }
int UnixAbstract() { return Unix(SOCK_STREAM, Given("abstract"), true); }
int UnixAbstractDatagram() { return Unix(SOCK_DGRAM, std::string(Given("abstract")) + "-dgram", true); }
int UnixInGrant() { return Unix(SOCK_STREAM, Path("data", "granted.sock")); }
int UnixThroughLink() {
  const std::string link = Path("work", "sock");
  if (symlink(Path("run", "agent.sock").c_str(), link.c_str()) != 0) return Held(errno);
  return Unix(SOCK_STREAM, link);
}
int UnixThroughDescriptor() {
  const int fd = open(Path("run", "agent.sock").c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return Held(errno);
  return Unix(SOCK_STREAM, "/proc/self/fd/" + std::to_string(fd));
}
int SshAgent() {
  const char* path = getenv("SSH_AUTH_SOCK");
  return path == nullptr ? Held("SSH_AUTH_SOCK is not set") : Unix(SOCK_STREAM, path);
}
int SessionBus() {
  const char* address = getenv("DBUS_SESSION_BUS_ADDRESS");
  if (address == nullptr || strncmp(address, "unix:path=", 10) != 0) return Held("DBUS_SESSION_BUS_ADDRESS is not set");
  return Unix(SOCK_STREAM, address + 10);
}
int BindOutside() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = Path("run", "made.sock");
  if (name.size() + 1 >= sizeof address.sun_path) return Held(ENAMETOOLONG);
  memcpy(address.sun_path, name.data(), name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) return Held(errno);
  return GotIf(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}
int AttachUlp() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return Held(errno);
  if (setsockopt(fd, IPPROTO_TCP, 31 /* TCP_ULP */, "tls", 4) == 0) return Got();
  // ENOTCONN: the module is there, and wants a connection. A kernel without it says ENOENT.
  if (errno == ENOTCONN) return Got();
  return errno == ENOENT && IsControl() ? Untried("kernel TLS (CONFIG_TLS)") : Held(errno);
}

}  // namespace

const Attack kNetworkAttacks[] = {
    {"tcp_loopback", Tcp},
    {"tcp_any_address", TcpAnyAddress},
    {"tcp_loopback_ipv6", Tcp6},
    {"tcp_mapped_address", TcpMapped},
    {"mptcp_loopback", Mptcp},
    {"fastopen_sendto", FastopenSendto},
    {"fastopen_sendmsg", FastopenSendmsg},
    {"fastopen_sendmmsg", FastopenSendmmsg},
    {"udp_loopback", Udp},
    {"udp_connected", UdpConnected},
    {"sctp_stream", Sctp},
    {"sctp_seqpacket", SctpSeqpacket},
    {"dccp", Dccp},
    {"smc", Smc},
    {"smc_family", SmcFamily},
    {"udplite", UdpLite},
    {"raw_icmp", RawIcmp},
    {"raw_icmpv6", RawIcmp6},
    {"packet_socket", Packet},
    {"vsock", Vsock},
    {"af_alg", Alg},
    {"af_xdp", Xdp},
    {"af_key", KeyManagement},
    {"netlink_netfilter", Netfilter},
    {"netlink_audit", Audit},
    {"netlink_uevent", Uevent},
    {"netlink_sock_diag", SockDiag},
    {"netlink_xfrm", Xfrm},
    {"netlink_generic", Generic},
    {"list_interfaces", ListInterfaces},
    {"set_loopback_flags", TakeLoopbackDown},
    {"see_hosts_connections", SeeHostsConnections},
    {"see_hosts_unix_sockets", SeeHostsUnixSockets},
    {"bind_hosts_port", BindHostsPort},
    {"dns_outside", DnsOutside},
    {"tcp_outside", TcpOutside},
    {"metadata_address", MetadataAddress},
    {"unix_stream", UnixStream},
    {"unix_datagram", UnixDatagram},
    {"unix_seqpacket", UnixSeqpacket},
    {"unix_docker_socket", DockerSocket},
    {"unix_abstract", UnixAbstract},
    {"unix_abstract_datagram", UnixAbstractDatagram},
    {"unix_in_grant", UnixInGrant},
    {"unix_through_link", UnixThroughLink},
    {"unix_through_descriptor", UnixThroughDescriptor},
    {"ssh_agent", SshAgent},
    {"session_bus", SessionBus},
    {"bind_socket_outside", BindOutside},
    {"tcp_ulp", AttachUlp},
    {nullptr, nullptr},
};

}  // namespace bulkhead::escape
