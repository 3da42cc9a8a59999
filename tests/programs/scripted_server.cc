// An MCP server that misbehaves on request: each argument is a rule, WHEN DO [WITH].
//
//   scripted_server legacy 'tools/call answer {"content":[]}' 'tools/call kill 9'
//
// WHEN is a method; METHOD#N, the N-th time it comes; *, a request that no other rule is for; line, every line; or
// start, eof, term (SIGTERM, which is not served otherwise). Rules for the same thing are done in order. Without a rule
// a request is answered with -32601, a notification is ignored, and the end of stdin is the end of the program. The
// words `legacy` and `modern` alone are a handshake.
//
// WITH may hold \n \r \t \\ and \xNN; $id and $token are the request's id and progress token, $line is the line.
//
//   answer JSON   error CODE [DATA]   answer-size N (a line of N bytes)   hold TEXT (until) release
//   print TEXT    line TEXT           bytewise TEXT (one write a byte)    fill N (bytes without newline)
//   repeat N TEXT (as a line)         stderr TEXT                         stderr-fill N
//   nest N (answers with as many arrays, one in the other)
//   append FILE TEXT (a line)         wait FIFO (one byte)                exe-size (answers with that of its file)
//   exit N        kill N              stay (do nothing more, read nothing) spin (the same, busily)
//   ignore-term   close-stdin         close-stdout                        helper TOKEN (own session, holds stdio,
//   stays)
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

namespace {

using std::string;

struct Rule {
  string when, verb, with;
};

const char* program;
std::vector<Rule> rules;
std::map<string, int> times_seen;
string held;
volatile sig_atomic_t was_terminated = 0;

void Obey(const string& when, const string& line);

string TakeWord(string* text) {
  const size_t end = text->find(' ');
  string word = text->substr(0, end);
  *text = end == string::npos ? "" : text->substr(end + 1);
  return word;
}

// A reader that went away is no reason to stop.
void WriteAll(int fd, const string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    done += static_cast<size_t>(count);
  }
}

// The value of the first member `key` in a line as our client writes it: compact.
string Member(const string& line, const string& key) {
  const size_t at = line.find("\"" + key + "\":");
  if (at == string::npos) return "";
  const size_t begin = at + key.size() + 3;
  if (line[begin] == '"') return line.substr(begin, line.find('"', begin + 1) + 1 - begin);
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

void ReplaceAll(string* text, const string& from, const string& to) {
  for (size_t at = 0; (at = text->find(from, at)) != string::npos; at += to.size()) text->replace(at, from.size(), to);
}

string Expand(const string& with, const string& line) {
  string text;
  for (size_t i = 0; i < with.size(); ++i) {
    if (with[i] != '\\' || i + 1 == with.size()) {
      text += with[i];
      continue;
    }
    const char letter = with[++i];
    if (letter == 'x' && i + 2 < with.size()) {
      text += static_cast<char>(strtol(with.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      text += letter == 'n' ? '\n' : letter == 'r' ? '\r' : letter == 't' ? '\t' : letter;
    }
  }
  ReplaceAll(&text, "$id", Member(line, "id"));
  ReplaceAll(&text, "$token", Member(line, "progressToken"));
  ReplaceAll(&text, "$line", line);
  return text;
}

[[noreturn]] void Stay() {
  while (true) {
    pause();
    if (was_terminated) Obey("term", "");
    was_terminated = 0;
  }
}

// Returns when it runs, which is seen by the pipe that its exec closes.
void StartHelper(const string& token) {
  int running[2];
  if (pipe2(running, O_CLOEXEC) != 0) _exit(3);
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    signal(SIGTERM, SIG_IGN);
    execl(program, program, "start stay", token.c_str(), nullptr);
    _exit(3);
  }
  close(running[1]);
  char byte;
  while (read(running[0], &byte, 1) < 0 && errno == EINTR) continue;
  close(running[0]);
}

string Answer(const string& line, const string& rest) {
  return "{\"jsonrpc\":\"2.0\",\"id\":" + Member(line, "id") + "," + rest + "}";
}

string AnswerOfSize(const string& line, size_t bytes) {
  const string text = Answer(line, "\"result\":{\"pad\":\"\"}");
  return Answer(line, "\"result\":{\"pad\":\"" + string(bytes - text.size(), 'x') + "\"}") + "\n";
}

string ExeSize() {
  const int fd = open(program, O_RDONLY | O_CLOEXEC);
  const off_t bytes = lseek(fd, 0, SEEK_END);
  close(fd);
  return "\"result\":{\"bytes\":" + std::to_string(bytes) + "}";
}

void Append(string rest) {
  const string path = TakeWord(&rest);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) fprintf(stderr, "cannot append to %s: %s\n", path.c_str(), strerror(errno));
  WriteAll(fd, rest + "\n");
  close(fd);
}

void WaitForByte(const string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char byte;
  if (fd < 0 || read(fd, &byte, 1) != 1) fprintf(stderr, "cannot wait for %s: %s\n", path.c_str(), strerror(errno));
  close(fd);
}

void Do(const Rule& rule, const string& line) {
  const string& verb = rule.verb;
  string text = Expand(rule.with, line);
  const int number = atoi(text.c_str());
  if (verb == "answer") return WriteAll(1, Answer(line, "\"result\":" + text) + "\n");
  if (verb == "error") {
    const string code = TakeWord(&text);
    const string data = text.empty() ? "" : ",\"data\":" + text;
    return WriteAll(1, Answer(line, "\"error\":{\"code\":" + code + ",\"message\":\"scripted\"" + data + "}") + "\n");
  }
  if (verb == "answer-size") return WriteAll(1, AnswerOfSize(line, static_cast<size_t>(number)));
  if (verb == "exe-size") return WriteAll(1, Answer(line, ExeSize()) + "\n");
  if (verb == "nest") {
    const size_t depth = static_cast<size_t>(number);
    return WriteAll(1, Answer(line, "\"result\":" + string(depth, '[') + string(depth, ']')) + "\n");
  }
  if (verb == "hold") held += text + "\n";
  if (verb == "release") return WriteAll(1, held), held.clear();
  if (verb == "print") return WriteAll(1, text);
  if (verb == "line") return WriteAll(1, text + "\n");
  if (verb == "stderr") return WriteAll(2, text);
  if (verb == "fill") return WriteAll(1, string(static_cast<size_t>(number), 'x'));
  if (verb == "stderr-fill") return WriteAll(2, string(static_cast<size_t>(number), 'x'));
  if (verb == "bytewise") {
    for (const char c : text + "\n") WriteAll(1, string(1, c));
  } else if (verb == "repeat") {
    TakeWord(&text);
    string all;
    for (int i = 0; i < number; ++i) all += text + "\n";
    WriteAll(1, all);
  } else if (verb == "append") {
    Append(text);
  } else if (verb == "wait") {
    WaitForByte(text);
  } else if (verb == "exit") {
    _exit(number);
  } else if (verb == "kill") {
    kill(getpid(), number);
    Stay();
  } else if (verb == "stay") {
    Stay();
  } else if (verb == "spin") {
    while (true) WriteAll(2, "spin\n");
  } else if (verb == "ignore-term") {
    signal(SIGTERM, SIG_IGN);
  } else if (verb == "close-stdin") {
    close(0);
  } else if (verb == "close-stdout") {
    close(1);
  } else if (verb == "helper") {
    StartHelper(text);
  }
}

bool HasRule(const string& when) {
  for (const Rule& rule : rules) {
    if (rule.when == when) return true;
  }
  return false;
}

void Obey(const string& when, const string& line) {
  const std::vector<Rule> all = rules;
  for (const Rule& rule : all) {
    if (rule.when == when) Do(rule, line);
  }
}

void OnLine(const string& line) {
  Obey("line", line);
  string method = Member(line, "method");
  if (method.size() < 2) return;  // an answer
  method = method.substr(1, method.size() - 2);
  const string nth = method + "#" + std::to_string(++times_seen[method]);
  const bool is_request = !Member(line.substr(0, line.find("\"params\"")), "id").empty();
  if (HasRule(nth)) return Obey(nth, line);
  if (HasRule(method)) return Obey(method, line);
  if (is_request && HasRule("*")) return Obey("*", line);
  if (is_request) Do({"", "error", "-32601"}, line);
}

void AddRule(string text) {
  if (text == "legacy") {
    AddRule("server/discover error -32601");
    AddRule(
        "initialize answer {\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
        "\"serverInfo\":{\"name\":\"scripted\",\"version\":\"1\"}}");
    return;
  }
  if (text == "modern") {
    AddRule(
        "server/discover answer {\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
        "\"capabilities\":{},\"_meta\":{\"io.modelcontextprotocol/"
        "serverInfo\":{\"name\":\"scripted\",\"version\":\"1\"}}}");
    return;
  }
  Rule rule;
  rule.when = TakeWord(&text);
  rule.verb = TakeWord(&text);
  rule.with = text;
  rules.push_back(rule);
}

}  // namespace

int main(int argc, char** argv) {
  program = argv[0];
  signal(SIGPIPE, SIG_IGN);
  for (int i = 1; i < argc; ++i) AddRule(argv[i]);
  if (HasRule("term")) {
    struct sigaction action = {};
    action.sa_handler = [](int) { was_terminated = 1; };
    sigaction(SIGTERM, &action, nullptr);
  }
  Obey("start", "");
  string buffer;
  char block[65536];
  while (true) {
    const ssize_t count = read(0, block, sizeof(block));
    if (was_terminated) Obey("term", "");
    was_terminated = 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    buffer.append(block, static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end; (end = buffer.find('\n', begin)) != string::npos; begin = end + 1) {
      OnLine(buffer.substr(begin, end - begin));
    }
    buffer.erase(0, begin);
  }
  Obey("eof", "");
}
