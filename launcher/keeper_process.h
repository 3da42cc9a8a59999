// A Process on Linux, which a keeper stands beside. Shared by launch.cc, which fills it, and keeper_process.cc.
#ifndef BULKHEAD_LAUNCHER_KEEPER_PROCESS_H_
#define BULKHEAD_LAUNCHER_KEEPER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "asio/steady_timer.hpp"
#include "bulkhead/launcher/plan_format.h"
#include "bulkhead/launcher/process.h"
#include "bulkhead/launcher/waitable_process.h"

namespace bulkhead::launcher {

struct KeeperProcess final : WaitableProcess {
  // Set before anyone else sees it; closed with the last reference.
  UniqueFd control;  // our end of the control socket
  UniqueFd keeper;   // pidfd; empty when the keeper was gone, and reaped by others, before it could be opened
  UniqueFd init;     // pidfd of the jail init, if the keeper sent it: tells that the tree of a killed keeper is gone
  pid_t owner = 0;   // the process that launched: a fork of it owns nothing
  std::string cgroup_folder;        // where a keeper that is killed leaves a group; empty: nowhere
  Clock::duration stop_time_max{};  // the whole ladder, with some to spare

  int EndFd() const override;
  void BeginStop(const std::shared_ptr<ProcessImpl>& self) override;
  ExitStatus Stop() override;
  void Kill() override;
  void End() override;

 private:
  bool Settle() override;
  int WaitFd() const override;
  void ReadMessages();
  void Send(char order);
  void KillKeeper();

  // Guarded by the mutex, as is every use of the timer.
  std::optional<wire::Message> exited;
  bool keeper_gone = false;
  std::weak_ptr<asio::steady_timer> stop_timer;
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_KEEPER_PROCESS_H_
