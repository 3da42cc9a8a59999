// RunWindows: `bulkhead run`. The server gets this process's own stdio; this process stays until the job is empty.
#include <windows.h>
// After windows.h.
#include <tlhelp32.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/report_json.h"
#include "bulkhead/launcher/windows/text.h"
#include "bulkhead/launcher/windows/windows.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

class Handle {
 public:
  explicit Handle(HANDLE handle = nullptr) : handle_(handle == INVALID_HANDLE_VALUE ? nullptr : handle) {}
  ~Handle() {
    if (handle_ != nullptr) CloseHandle(handle_);
  }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  HANDLE get() const { return handle_; }

 private:
  HANDLE handle_;
};

absl::Status Failed(absl::string_view what) {
  return absl::InternalError(absl::StrCat(what, ": error ", GetLastError(), " of Windows"));
}

// A copy that a child may inherit; NUL in place of a closed one.
Handle Inheritable(HANDLE source) {
  HANDLE copy = nullptr;
  if (source != nullptr && source != INVALID_HANDLE_VALUE &&
      DuplicateHandle(GetCurrentProcess(), source, GetCurrentProcess(), &copy, 0, TRUE, DUPLICATE_SAME_ACCESS)) {
    return Handle(copy);
  }
  SECURITY_ATTRIBUTES inherit = {sizeof(inherit), nullptr, TRUE};
  return Handle(CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherit,
                            OPEN_EXISTING, 0, nullptr));
}

// The job ends all that is in it when its last handle is closed, which is ours: also when this process is killed.
Handle MakeJob() {
  Handle job(CreateJobObjectW(nullptr, nullptr));
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {};
  limits.BasicLimitInformation.LimitFlags =
      JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
  if (job.get() == nullptr ||
      !SetInformationJobObject(job.get(), JobObjectExtendedLimitInformation, &limits, sizeof(limits))) {
    return Handle();
  }
  return job;
}

// When the process began; 0 if that can't be known.
unsigned long long BeginOf(HANDLE process) {
  FILETIME begin, end, kernel, user;
  if (!GetProcessTimes(process, &begin, &end, &kernel, &user)) return 0;
  return static_cast<unsigned long long>(begin.dwHighDateTime) << 32 | begin.dwLowDateTime;
}

// Empty when there is none any more. A process that is younger than this one only has its number.
Handle OpenParent() {
  const Handle all(CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0));
  PROCESSENTRY32W entry = {};
  entry.dwSize = sizeof(entry);
  for (BOOL more = all.get() != nullptr && Process32FirstW(all.get(), &entry); more;
       more = Process32NextW(all.get(), &entry)) {
    if (entry.th32ProcessID != GetCurrentProcessId()) continue;
    Handle parent(OpenProcess(SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, entry.th32ParentProcessID));
    if (parent.get() != nullptr && BeginOf(parent.get()) > BeginOf(GetCurrentProcess())) return Handle();
    return parent;
  }
  return Handle();
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

// Suspended, so that it is in the job before its first instruction.
absl::StatusOr<Handle> StartInJob(const LaunchPlan& plan, HANDLE job) {
  const WindowsPlan& windows = *plan.windows();
  const Handle in = Inheritable(GetStdHandle(STD_INPUT_HANDLE)), out = Inheritable(GetStdHandle(STD_OUTPUT_HANDLE)),
               err = Inheritable(windows.discard_stderr ? nullptr : GetStdHandle(STD_ERROR_HANDLE));
  if (in.get() == nullptr || out.get() == nullptr || err.get() == nullptr) {
    return Failed("cannot pass stdio to the server");
  }
  StartInfo info;
  if (!info.Fill({in.get(), out.get(), err.get()})) return Failed("cannot list the server's handles");
  std::wstring command_line = ToWide(windows.start.command_line);
  std::u16string environment = windows.environment;
  PROCESS_INFORMATION process;
  if (!CreateProcessW(ToWide(windows.start.application).c_str(), command_line.data(), nullptr, nullptr, TRUE,
                      CREATE_SUSPENDED | CREATE_NO_WINDOW | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT,
                      environment.data(), ToWide(windows.cwd).c_str(), info.get(), &process)) {
    return StartFailed(plan, GetLastError());
  }
  Handle server(process.hProcess);
  const Handle thread(process.hThread);
  if (!AssignProcessToJobObject(job, server.get()) || ResumeThread(thread.get()) == static_cast<DWORD>(-1)) {
    const absl::Status status = Failed("cannot put the server into its job");
    TerminateProcess(server.get(), 125);
    return status;
  }
  return server;
}

bool WriteReport(HANDLE file, const std::string& text) {
  DWORD written = 0;
  return WriteFile(file, text.data(), static_cast<DWORD>(text.size()), &written, nullptr) && written == text.size();
}

}  // namespace

absl::Status RunWindows(const LaunchPlan& plan, const std::string& report_path) {
  Handle report;
  if (!report_path.empty()) {
    report = Handle(CreateFileW(ToWide(report_path).c_str(), GENERIC_WRITE, FILE_SHARE_READ, nullptr, CREATE_ALWAYS,
                                FILE_ATTRIBUTE_NORMAL, nullptr));
    if (report.get() == nullptr) return Failed(absl::StrCat("cannot write the report to ", policy::Quote(report_path)));
  }
  const Handle job = MakeJob();
  if (job.get() == nullptr) return Failed("cannot make the server's job object");
  const Handle parent = OpenParent();
  absl::StatusOr<Handle> server = StartInJob(plan, job.get());
  if (!server.ok()) return server.status();

  // The host is gone: its ends of the pipes are, too, so that the server has seen the end of its stdin.
  const HANDLE handles[] = {server->get(), parent.get()};
  const DWORD count = parent.get() == nullptr ? 1 : 2;
  if (WaitForMultipleObjects(count, handles, FALSE, INFINITE) == WAIT_OBJECT_0 + 1) {
    WaitForSingleObject(server->get(), static_cast<DWORD>(absl::ToInt64Milliseconds(plan.windows()->stdin_grace)));
  }
  DWORD code = STILL_ACTIVE;
  if (WaitForSingleObject(server->get(), 0) == WAIT_OBJECT_0) GetExitCodeProcess(server->get(), &code);
  const bool ended_itself = code != STILL_ACTIVE;
  TerminateJobObject(job.get(), 137);  // and what the server left behind
  if (!ended_itself) code = 137;
  if (report.get() != nullptr) {
    WriteReport(report.get(), absl::StrCat(ReportJsonHead(plan.variants()[0].report, plan.program()),
                                           ",\"exit\":{\"code\":", code, "}}\n"));
  }
  ExitProcess(code);
}

}  // namespace bulkhead::launcher
