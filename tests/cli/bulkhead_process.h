// Runs the real `bulkhead` (a data dependency of the test) and gives back what it wrote and how it ended.
#ifndef BULKHEAD_TESTS_CLI_BULKHEAD_PROCESS_H_
#define BULKHEAD_TESTS_CLI_BULKHEAD_PROCESS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace bulkhead::cli {

struct Invocation {
  std::string program;                     // a path, instead of the real bulkhead
  std::vector<std::string> words;          // after the program's name
  std::map<std::string, std::string> env;  // all of it
  std::string cwd = "/";
  std::string stdin_text;
  std::vector<int> closed;        // of 0, 1 and 2
  bool as_ordinary_user = false;  // when the test runs as root
  std::string stdout_path;        // instead of a pipe; may be a terminal
  // Sent to it, each once that is a line of the file, in order, and when the process catches it.
  // `signals_after_output`: and has written something to stdout.
  bool signals_after_output = false;
  std::vector<std::pair<std::string, int>> signals;
  std::string signals_file;
};

struct Result {
  int exit_code = -1;  // as a shell shows it; -1: it could not be started or did not end in time
  std::string out, err;
};

Result RunBulkhead(const Invocation& invocation);

// A new empty folder, removed with all that is in it at the end of its scope. Any user may write there.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // The full path of `name` in it, with `text` written there.
  std::string Write(const std::string& name, const std::string& text) const;
  // What is in it, at any depth, sorted.
  std::vector<std::string> Names() const;

 private:
  std::string path_;
};

}  // namespace bulkhead::cli

#endif  // BULKHEAD_TESTS_CLI_BULKHEAD_PROCESS_H_
