// A small MCP server to try Bulkhead with, and an example of what one is: JSON-RPC messages, one a line, requests on
// stdin and answers on stdout, until stdin ends.
//
// Its tools are deliberately unchecked. It reads any file, shows any environment variable and starts any program that
// the operating system lets it, which is what a server that is careless, or has been taken over, can do as well. Run it
// with and without Bulkhead in front to see the difference; examples/demo.sh does.
//
// On Windows it starts no programs.
//
// Speaks the `initialize` handshake of the protocol versions below. One request at a time.
#include <fcntl.h>
#include <unistd.h>
#ifdef _WIN32
#include <io.h>
#else
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

#ifndef _WIN32
extern char** environ;
#endif

namespace {

using nlohmann::json;

// Newest first. 2025-03-26 is left out: whoever speaks it must also take arrays of messages.
constexpr std::array<const char*, 3> kProtocolVersions = {"2025-11-25", "2025-06-18", "2024-11-05"};
#ifdef _WIN32
constexpr int kReadFlags = O_RDONLY | O_BINARY | O_NOINHERIT;
#else
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC;
#endif
constexpr std::size_t kTextBytesMax = 1 << 20;  // of a file or of a program's output; the rest is left out

// JSON-RPC's error codes (https://www.jsonrpc.org/specification, section 5.1).
constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;

// The tools. One that fails says so in its result, where the model can see it. That is no JSON-RPC error.

json TextResult(const std::string& text, bool is_error = false) {
  return {{"content", json::array({{{"type", "text"}, {"text", text}}})}, {"isError", is_error}};
}

json ErrnoResult(const std::string& what, int error) { return TextResult(what + ": " + std::strerror(error), true); }

// Up to kTextBytesMax bytes from `fd`; false with errno set when reading fails.
bool ReadAll(int fd, std::string& text) {
  std::array<char, 16384> buffer;
  while (text.size() < kTextBytesMax) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  text.resize(kTextBytesMax);
  return true;
}

json Echo(const json& arguments) { return TextResult(arguments.at("text").get<std::string>()); }

json ReadFile(const json& arguments) {
  const std::string path = arguments.at("path").get<std::string>();
  const int fd = open(path.c_str(), kReadFlags);
  if (fd < 0) return ErrnoResult("cannot open " + path, errno);
  std::string text;
  const bool ok = ReadAll(fd, text);
  const int error = errno;
  close(fd);
  return ok ? TextResult(text) : ErrnoResult("cannot read " + path, error);
}

json Env(const json& arguments) {
  const std::string name = arguments.at("name").get<std::string>();
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? TextResult(value) : TextResult(name + " is not set", true);
}

#ifndef _WIN32
// Waits for a program that was started and answers with what it wrote to `output_fd`.
json FinishedResult(pid_t pid, int output_fd) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoResult("cannot wait for process " + std::to_string(pid), errno);
  }
  std::string output;
  lseek(output_fd, 0, SEEK_SET);
  ReadAll(output_fd, output);
  if (WIFSIGNALED(status)) return TextResult(output + "killed by signal " + std::to_string(WTERMSIG(status)), true);
  if (WEXITSTATUS(status) != 0) {
    return TextResult(output + "exited with code " + std::to_string(WEXITSTATUS(status)), true);
  }
  return TextResult(output);
}

// Starts a program. Its output must not get into ours, which belongs to the protocol. In the background it gets a
// session of its own and nobody waits for it: when this server ends, it stays.
json Spawn(const json& arguments) {
  std::vector<std::string> command = arguments.at("command").get<std::vector<std::string>>();
  const bool background = arguments.value("background", false);
  if (command.empty()) return TextResult("the command is empty", true);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);

  const int output_fd = background ? open("/dev/null", O_WRONLY | O_CLOEXEC) : memfd_create("output", MFD_CLOEXEC);
  if (output_fd < 0) return ErrnoResult("cannot open a place for the output", errno);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output_fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output_fd, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (background) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);

  json result;
  if (error != 0) {
    result = ErrnoResult("cannot start " + command[0], error);
  } else if (background) {
    result = TextResult("started as process " + std::to_string(pid));
  } else {
    result = FinishedResult(pid, output_fd);
  }
  close(output_fd);
  return result;
}
#endif

struct Tool {
  const char* name;
  const char* description;
  json properties;  // JSON Schema of each argument
  json required;    // names
  json (*call)(const json& arguments);
};

const std::vector<Tool>& Tools() {
  static const auto* const tools = new std::vector<Tool>{
      {"echo", "Answers with the text it was given.", {{"text", {{"type", "string"}}}}, {"text"}, Echo},
      {"read_file", "Reads a file, whichever it is.", {{"path", {{"type", "string"}}}}, {"path"}, ReadFile},
      {"env", "Shows a variable of this server's environment.", {{"name", {{"type", "string"}}}}, {"name"}, Env},
#ifndef _WIN32
      {"spawn",
       "Starts a program and answers with its output, or leaves it running in the background.",
       {{"command", {{"type", "array"}, {"items", {{"type", "string"}}}}}, {"background", {{"type", "boolean"}}}},
       {"command"},
       Spawn},
#endif
  };
  return *tools;
}

// The protocol.

json ErrorReply(const json& id, int code, const std::string& message) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}};
}

json ResultReply(const json& id, const json& result) { return {{"jsonrpc", "2.0"}, {"id", id}, {"result", result}}; }

// The version that the client asked for if we speak it, else our newest; the client then decides.
json Initialize(const json& params) {
  std::string version = kProtocolVersions[0];
  if (params.contains("protocolVersion") && params["protocolVersion"].is_string()) {
    const std::string asked = params["protocolVersion"];
    if (std::find(kProtocolVersions.begin(), kProtocolVersions.end(), asked) != kProtocolVersions.end()) {
      version = asked;
    }
  }
  return {{"protocolVersion", version},
          {"capabilities", {{"tools", json::object()}}},
          {"serverInfo", {{"name", "bulkhead-demo-server"}, {"version", "1.0.0"}}}};
}

json ListTools() {
  json list = json::array();
  for (const Tool& tool : Tools()) {
    list.push_back(
        {{"name", tool.name},
         {"description", tool.description},
         {"inputSchema", {{"type", "object"}, {"properties", tool.properties}, {"required", tool.required}}}});
  }
  return {{"tools", list}};
}

json CallTool(const json& id, const json& params) {
  const json name = params.value("name", json());
  for (const Tool& tool : Tools()) {
    if (name != tool.name) continue;
    try {
      return ResultReply(id, tool.call(params.value("arguments", json::object())));
    } catch (const json::exception& error) {  // an argument is missing or of another type
      return ErrorReply(id, kInvalidParams, std::string("arguments of ") + tool.name + ": " + error.what());
    }
  }
  return ErrorReply(id, kInvalidParams, "Unknown tool: " + name.dump());
}

// The reply to one message; null for a notification, which gets none.
json Answer(const json& message) {
  if (!message.is_object() || !message.contains("method") || !message["method"].is_string()) {
    return ErrorReply(nullptr, kInvalidRequest, "Not a JSON-RPC request");
  }
  if (!message.contains("id")) return nullptr;
  const json& id = message["id"];
  const std::string method = message["method"];
  json params = message.value("params", json::object());
  if (!params.is_object()) return ErrorReply(id, kInvalidParams, "params is not an object");
  if (method == "initialize") return ResultReply(id, Initialize(params));
  if (method == "ping") return ResultReply(id, json::object());
  if (method == "tools/list") return ResultReply(id, ListTools());
  if (method == "tools/call") return CallTool(id, params);
  return ErrorReply(id, kMethodNotFound, "Method not found: " + method);
}

void Send(const json& reply) {
  // Bytes that are not UTF-8, say of a binary file, become U+FFFD. The line must not be held back: flush.
  std::cout << reply.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
}

}  // namespace

#ifdef _WIN32
int wmain() {
  for (const int fd : {0, 1}) _setmode(fd, _O_BINARY);  // lines end with a newline alone
#else
int main() {
  std::signal(SIGPIPE, SIG_IGN);  // a client that has gone shows as a failed write
#endif
  std::string line;
  while (std::cout && std::getline(std::cin, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const json message = json::parse(line, nullptr, /*allow_exceptions=*/false);
    const json reply = message.is_discarded() ? ErrorReply(nullptr, kParseError, "Not JSON") : Answer(message);
    if (!reply.is_null()) Send(reply);
  }
  return 0;
}
