// RunWindows: `bulkhead run`. The server gets this process's own stdio; this process stays until the job is empty.
#include <windows.h>
// After windows.h.
#include <tlhelp32.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/report_json.h"
#include "bulkhead/launcher/windows/job.h"
#include "bulkhead/launcher/windows/text.h"
#include "bulkhead/launcher/windows/windows.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

// When the process began; 0 if that can't be known.
unsigned long long BeginOf(HANDLE process) {
  FILETIME begin, end, kernel, user;
  if (!GetProcessTimes(process, &begin, &end, &kernel, &user)) return 0;
  return static_cast<unsigned long long>(begin.dwHighDateTime) << 32 | begin.dwLowDateTime;
}

// Empty when there is none any more. A process that is younger than this one only has its number.
UniqueFd OpenParent() {
  const UniqueFd all(CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0));
  PROCESSENTRY32W entry = {};
  entry.dwSize = sizeof(entry);
  for (BOOL more = all.valid() && Process32FirstW(all.get(), &entry); more; more = Process32NextW(all.get(), &entry)) {
    if (entry.th32ProcessID != GetCurrentProcessId()) continue;
    UniqueFd parent(OpenProcess(SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, entry.th32ParentProcessID));
    if (parent.valid() && BeginOf(parent.get()) > BeginOf(GetCurrentProcess())) return UniqueFd();
    return parent;
  }
  return UniqueFd();
}

bool WriteReport(NativeFd file, const std::string& text) {
  DWORD written = 0;
  return WriteFile(file, text.data(), static_cast<DWORD>(text.size()), &written, nullptr) && written == text.size();
}

}  // namespace

absl::Status RunWindows(const LaunchPlan& plan, const std::string& report_path) {
  UniqueFd report;
  if (!report_path.empty()) {
    report.reset(CreateFileW(ToWide(report_path).c_str(), GENERIC_WRITE, FILE_SHARE_READ, nullptr, CREATE_ALWAYS,
                             FILE_ATTRIBUTE_NORMAL, nullptr));
    if (!report.valid()) return WindowsError(absl::StrCat("cannot write the report to ", policy::Quote(report_path)));
  }
  WindowsStdio stdio;
  stdio.in = Inheritable(GetStdHandle(STD_INPUT_HANDLE));
  stdio.out = Inheritable(GetStdHandle(STD_OUTPUT_HANDLE));
  absl::StatusOr<UniqueFd> err = OpenWindowsStderr(plan.stderr_rules());
  if (!err.ok()) return err.status();
  stdio.err = *std::move(err);
  if (!stdio.in.valid() || !stdio.out.valid()) return WindowsError("cannot pass stdio to the server");
  const UniqueFd parent = OpenParent();
  absl::StatusOr<ServerInJob> server = StartInJob(plan, stdio);
  if (!server.ok()) return server.status();

  // The host is gone: its ends of the pipes are, too, so that the server has seen the end of its stdin.
  const HANDLE handles[] = {server->server.get(), parent.get()};
  const DWORD count = parent.valid() ? 2 : 1;
  if (WaitForMultipleObjects(count, handles, FALSE, INFINITE) == WAIT_OBJECT_0 + 1) {
    WaitForSingleObject(server->server.get(),
                        static_cast<DWORD>(absl::ToInt64Milliseconds(plan.windows()->stdin_grace)));
  }
  const ExitStatus status = EndJob(*server);
  if (report.valid()) {
    WriteReport(report.get(), absl::StrCat(ReportJsonHead(plan.variants()[0].report, plan.program()),
                                           ",\"exit\":{\"code\":", status.shell_code(), "}}\n"));
  }
  ExitProcess(static_cast<UINT>(status.shell_code()));
}

}  // namespace bulkhead::launcher
