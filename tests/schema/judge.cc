// What the parser says of policies, for schema_test.mjs: one policy a line on stdin, one line on stdout for each: "ok",
// or its first mistake. Fields that are not enforced yet are judged by their form. The variables of schema_test.mjs are
// set.
#include <cstddef>
#include <iostream>
#include <string>

#include "bulkhead/policy/parse.h"
#include "bulkhead/policy/policy.h"

int main() {
  bulkhead::policy::ParseOptions options;
  options.variables.workspace = "/home/u/ws";
  options.variables.home = "/home/u";
  options.variables.tmp = "/tmp";
  options.variables.cache_root = "/home/u/.cache/bulkhead";
  options.variables.env = {{"PLACE", "/env/place"}};
  options.variables.var = {{"DATA", "/srv/data"}};
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto fields =
        bulkhead::policy::ParseFields({"policy.json", line}, options, bulkhead::policy::Unenforced::kAccept);
    const std::string message = fields.ok() ? "ok" : std::string(fields.status().message());
    std::cout << message.substr(0, message.find('\n')) << "\n";
  }
}
