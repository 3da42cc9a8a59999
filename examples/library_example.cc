// Starts a server in its jail and asks it one thing: library-example POLICY COMMAND [ARG...]
#include <unistd.h>

#include <iostream>

#include "bulkhead/launcher/process.h"
#include "bulkhead/policy/load.h"

namespace bh = bulkhead;

absl::Status AskOnce(const std::string& policy_file, const bh::policy::CommandRequest& request) {
  auto policy = bh::policy::LoadPolicy(policy_file);  // what may run
  if (!policy.ok()) return policy.status();
  auto command = bh::policy::ValidateCommand(*policy, request);  // may this?
  if (!command.ok()) return command.status();
  auto plan = bh::launcher::BuildLaunchPlan(*policy, *command, bh::launcher::DetectKernelFeatures());  // how, here
  if (!plan.ok()) return plan.status();
  auto process = bh::launcher::Launch(*plan);  // returns when the server runs; we own its whole tree
  if (!process.ok()) return process.status();

  const std::string ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
  char answer[4096];
  ssize_t count = write(process->stdin_fd().get(), ping.data(), ping.size());
  if (count > 0) count = read(process->stdout_fd().get(), answer, sizeof answer);
  if (count > 0) std::cout.write(answer, count);

  const bh::launcher::ExitStatus ended = process->Stop();  // the gentle way; the destructor kills
  std::cout << "tier " << bh::policy::TierName(process->report().tier) << ", " << ended.ToString() << "\n";
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  bh::policy::CommandRequest request;
  request.argv.assign(argv + 2, argv + argc);
  request.host_cwd = "/";
  request.host_env = {{"PATH", "/usr/bin:/bin"}};  // the policy says which names of it pass
  const absl::Status status = AskOnce(argv[1], request);
  if (status.ok()) return 0;
  std::cerr << "library-example: " << status.message() << "\n";
  return bh::launcher::ExitCodeForStatus(status);
}
