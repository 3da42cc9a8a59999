// What the tests share that run policies for real: a person's folder with a project and the programs of tests/programs.
#ifndef BULKHEAD_TESTS_CLI_POLICY_FIXTURE_H_
#define BULKHEAD_TESTS_CLI_POLICY_FIXTURE_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/bulkhead_process.h"

namespace bulkhead::cli {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

// nlohmann takes {x} for x or for [x], as the compiler likes.
inline Json List(const std::vector<std::string>& entries) { return entries; }

inline std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string ReadRunfile(const std::string& name) {
  return ReadText(std::string(getenv("TEST_SRCDIR")) + "/" + getenv("TEST_WORKSPACE") + "/" + name);
}

// Listens on a port of this machine.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const general = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (bind(fd_, general, size) == 0 && listen(fd_, 4) == 0 && getsockname(fd_, general, &size) == 0) {
      port_ = std::to_string(ntohs(address.sin_port));
    }
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  const std::string& port() const { return port_; }

 private:
  int fd_;
  std::string port_;
};

class PolicyFixture : public ::testing::Test {
 protected:
  PolicyFixture() {
    project_ = Folder("project");
    note_ = Write("project/note", "the note");
    probe_ = Program("probe", ReadRunfile("tests/programs/probe"));
  }

  std::string Folder(const std::string& name) const {
    const std::string path = home_.path() + "/" + name;
    mkdir(path.c_str(), 0755);
    Own(path);
    return path;
  }
  std::string Write(const std::string& name, const std::string& text) const {
    if (name.find('/') != std::string::npos) Folder(name.substr(0, name.find('/')));
    const std::string path = home_.Write(name, text);
    Own(path);
    return path;
  }
  std::string Program(const std::string& name, const std::string& bytes) const {
    const std::string path = Write("tools/" + name, bytes);
    chmod(path.c_str(), 0755);
    return path;
  }

  // The least that starts the probe.
  Json LeastPolicy() const {
    return {{"version", 1}, {"filesystem", {{"rx", List({":runtime", home_.path() + "/tools"})}}}};
  }

  TemporaryFolder home_;
  Listener listener_;
  std::string project_, note_, probe_;

 private:
  // As a person's, for a test that root starts.
  static void Own(const std::string& path) {
    if (geteuid() == 0) {
      EXPECT_EQ(chown(path.c_str(), 65534, 65534), 0);
    }
  }
};

}  // namespace bulkhead::cli

#endif  // BULKHEAD_TESTS_CLI_POLICY_FIXTURE_H_
