#include "bulkhead/launcher/windows/job.h"

#include <windows.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/windows/stderr_file.h"
#include "bulkhead/launcher/windows/text.h"
#include "bulkhead/launcher/windows/token.h"
#include "bulkhead/launcher/windows/windows.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

constexpr int kEndTimeMs = 1000;
constexpr absl::Duration kTick = absl::Nanoseconds(100);  // the unit of the times of a job
constexpr int kSigkill = 9;                               // the word for it in an ExitStatus

// What the system says back is what counts: wine 8 takes every limit, and keeps none.
absl::Status CheckLimits(NativeFd job, const JOBOBJECT_EXTENDED_LIMIT_INFORMATION& asked) {
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION kept = {};
  if (!QueryInformationJobObject(job, JobObjectExtendedLimitInformation, &kept, sizeof(kept), nullptr)) {
    return WindowsError("cannot read the limits of the server's job object");
  }
  const DWORD flags = asked.BasicLimitInformation.LimitFlags;
  const auto refuse = [](const char* field) {
    return absl::FailedPreconditionError(absl::StrCat(field,
                                                      ": this system does not keep the limit of a job object; take it "
                                                      "out, or what a preset says of it by \"without\""));
  };
  if ((flags & JOB_OBJECT_LIMIT_JOB_MEMORY) != 0 &&
      ((kept.BasicLimitInformation.LimitFlags & JOB_OBJECT_LIMIT_JOB_MEMORY) == 0 ||
       kept.JobMemoryLimit != asked.JobMemoryLimit)) {
    return refuse("/limits/memory");
  }
  if ((flags & JOB_OBJECT_LIMIT_ACTIVE_PROCESS) != 0 &&
      ((kept.BasicLimitInformation.LimitFlags & JOB_OBJECT_LIMIT_ACTIVE_PROCESS) == 0 ||
       kept.BasicLimitInformation.ActiveProcessLimit != asked.BasicLimitInformation.ActiveProcessLimit)) {
    return refuse("/limits/processes");
  }
  if ((flags & JOB_OBJECT_LIMIT_JOB_TIME) != 0 &&
      ((kept.BasicLimitInformation.LimitFlags & JOB_OBJECT_LIMIT_JOB_TIME) == 0 ||
       kept.BasicLimitInformation.PerJobUserTimeLimit.QuadPart !=
           asked.BasicLimitInformation.PerJobUserTimeLimit.QuadPart)) {
    return refuse("/limits/cpu_time");
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> MakeJob(const WindowsPlan& windows) {
  UniqueFd job(CreateJobObjectW(nullptr, nullptr));
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {};
  limits.BasicLimitInformation.LimitFlags =
      JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
  if (windows.memory_bytes != 0) {
    limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_JOB_MEMORY;
    limits.JobMemoryLimit = static_cast<SIZE_T>(windows.memory_bytes);
  }
  if (windows.processes != 0) {
    limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_ACTIVE_PROCESS;
    limits.BasicLimitInformation.ActiveProcessLimit = windows.processes;
  }
  if (windows.cpu_time > absl::ZeroDuration()) {
    limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_JOB_TIME;
    limits.BasicLimitInformation.PerJobUserTimeLimit.QuadPart = windows.cpu_time / kTick;
  }
  if (!job.valid() || !SetInformationJobObject(job.get(), JobObjectExtendedLimitInformation, &limits, sizeof(limits))) {
    return WindowsError("cannot make the server's job object");
  }
  const absl::Status status = CheckLimits(job.get(), limits);
  if (!status.ok()) return status;
  return job;
}

// STARTUPINFOEXW with the one list of handles that the child inherits.
class StartInfo {
 public:
  bool Fill(std::vector<HANDLE> handles) {
    handles_ = std::move(handles);
    info_.StartupInfo.cb = sizeof(info_);
    info_.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    info_.StartupInfo.hStdInput = handles_[0];
    info_.StartupInfo.hStdOutput = handles_[1];
    info_.StartupInfo.hStdError = handles_[2];
    SIZE_T bytes = 0;
    InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes);
    space_.resize(bytes);
    info_.lpAttributeList = reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(space_.data());
    return InitializeProcThreadAttributeList(info_.lpAttributeList, 1, 0, &bytes) &&
           UpdateProcThreadAttribute(info_.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles_.data(),
                                     handles_.size() * sizeof(HANDLE), nullptr, nullptr);
  }
  STARTUPINFOW* get() { return &info_.StartupInfo; }

 private:
  STARTUPINFOEXW info_ = {};
  std::vector<char> space_;
  std::vector<HANDLE> handles_;
};

absl::Status StartFailed(const LaunchPlan& plan, DWORD error) {
  const std::string text = absl::StrCat("cannot run ", policy::Quote(plan.program()), ": error ", error, " of Windows",
                                        error == ERROR_BAD_EXE_FORMAT ? ", it is no program for this system" : "");
  switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
      return absl::NotFoundError(text);
    case ERROR_ACCESS_DENIED:
    case ERROR_BAD_EXE_FORMAT:
      return absl::PermissionDeniedError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::Duration Ticks(const LARGE_INTEGER& ticks) { return kTick * ticks.QuadPart; }

}  // namespace

absl::Status WindowsError(absl::string_view what) {
  return absl::InternalError(absl::StrCat(what, ": error ", GetLastError(), " of Windows"));
}

UniqueFd Inheritable(NativeFd source) {
  HANDLE copy = nullptr;
  if (source != nullptr && source != INVALID_HANDLE_VALUE &&
      DuplicateHandle(GetCurrentProcess(), source, GetCurrentProcess(), &copy, 0, TRUE, DUPLICATE_SAME_ACCESS)) {
    return UniqueFd(copy);
  }
  SECURITY_ATTRIBUTES inherit = {sizeof(inherit), nullptr, TRUE};
  return UniqueFd(CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherit,
                              OPEN_EXISTING, 0, nullptr));
}

absl::StatusOr<UniqueFd> OpenWindowsStderr(const policy::StderrRules& rules) {
  if (rules.mode == policy::StderrMode::kFile) return OpenToAppend(rules.file);
  UniqueFd err = Inheritable(rules.mode == policy::StderrMode::kInherit ? GetStdHandle(STD_ERROR_HANDLE) : nullptr);
  if (!err.valid()) return WindowsError("cannot pass stderr to the server");
  return err;
}

// Suspended, so that it is in the job before its first instruction.
absl::StatusOr<ServerInJob> StartInJob(const LaunchPlan& plan, const WindowsStdio& stdio) {
  const WindowsPlan& windows = *plan.windows();
  absl::StatusOr<UniqueFd> job = MakeJob(windows);
  if (!job.ok()) return job.status();
  StartInfo info;
  if (!info.Fill({stdio.in.get(), stdio.out.get(), stdio.err.get()})) {
    return WindowsError("cannot list the server's handles");
  }
  std::wstring command_line = ToWide(windows.start.command_line);
  std::u16string environment = windows.environment;
  PROCESS_INFORMATION process;
  const absl::StatusOr<UniqueFd> token = MakeServerToken();
  if (!token.ok()) return token.status();
  if (!CreateProcessAsUserW(
          token->get(), ToWide(windows.start.application).c_str(), command_line.data(), nullptr, nullptr, TRUE,
          CREATE_SUSPENDED | CREATE_NO_WINDOW | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT,
          environment.data(), ToWide(windows.cwd).c_str(), info.get(), &process)) {
    return StartFailed(plan, GetLastError());
  }
  UniqueFd server(process.hProcess);
  const UniqueFd thread(process.hThread);
  absl::Status status = CheckServerToken(server.get());
  if (status.ok() && !AssignProcessToJobObject(job->get(), server.get())) {
    status = WindowsError("cannot put the server into its job");
  }
  if (status.ok() && ResumeThread(thread.get()) == static_cast<DWORD>(-1)) {
    status = WindowsError("cannot let the server run");
  }
  if (!status.ok()) {
    TerminateProcess(server.get(), kTerminatedCode);
    return status;
  }
  return ServerInJob{*std::move(job), std::move(server)};
}

ExitStatus EndJob(const ServerInJob& server) {
  ExitStatus status;
  const bool ended_itself = WaitForSingleObject(server.server.get(), 0) == WAIT_OBJECT_0;
  TerminateJobObject(server.job.get(), kTerminatedCode);  // and what the server left behind
  JOBOBJECT_BASIC_ACCOUNTING_INFORMATION used = {};
  for (int time = 0; time < kEndTimeMs; ++time) {
    if (!QueryInformationJobObject(server.job.get(), JobObjectBasicAccountingInformation, &used, sizeof(used),
                                   nullptr) ||
        used.ActiveProcesses == 0) {
      break;
    }
    Sleep(1);
  }
  status.user_time = Ticks(used.TotalUserTime);
  status.system_time = Ticks(used.TotalKernelTime);
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {};
  if (QueryInformationJobObject(server.job.get(), JobObjectExtendedLimitInformation, &limits, sizeof(limits),
                                nullptr)) {
    status.max_resident_bytes = limits.PeakProcessMemoryUsed;
  }
  DWORD code = kTerminatedCode;
  GetExitCodeProcess(server.server.get(), &code);
  status.code = static_cast<int>(code);
  if (!ended_itself) {
    status.kind = ExitStatus::Kind::kSignaled;
    status.signal = kSigkill;
  }
  return status;
}

}  // namespace bulkhead::launcher
