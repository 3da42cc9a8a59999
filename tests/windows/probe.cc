// A tiny server for tests/windows/run.sh, and the host that it needs: does one thing, says how it went, ends.
//   argv WORD...        prints [WORD] for each        environ          prints the names of its variables, sorted
//   line WORD...        prints its command line as it got it
//   commit MIB          commits that much memory, and prints "committed" or "refused"
//   started             starts itself again, and prints "started" or "refused"
//   unit WORD           ends with the upper half of the word's first unit
//   exit CODE                                         socket           makes a TCP socket and binds it
//   tree FILE           starts a detached process that holds FILE, and ends once it does
//   break-away FILE     the same, outside the job
//   stay                stays, until it is killed
//   token               prints the names of its privileges, and whether it is an administrator
//   burn SECONDS        uses that much time, and prints "burnt"
//   link LINK TARGET    makes a symbolic link to a file
//   complain TEXT CODE  says TEXT on stderr, and ends
//   linger FILE COMMAND...  starts COMMAND with its own stdio, and when that has ended, holds FILE
//   serve FILE COMMAND...  starts a detached process that holds FILE, and COMMAND with its own stdio
//   hold FILE           holds FILE so that nobody else can open it, until it is killed
//   is-held FILE        prints "held" or "free"; waits up to five seconds for "free"
//   handle NUMBER       prints whether that number is an inherited event
//   with-handle PROGRAM WORD...    starts it with an inheritable event; @ among the words becomes the event's number
//   unpaired PROGRAM WORD...       starts it; @ among the words becomes half of a pair of surrogates
//   kill-launcher FILE COMMAND...  starts it, waits until FILE is held, terminates it
#include <winsock2.h>
// After winsock2.h.
#include <windows.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Words = std::vector<std::wstring>;

void Say(const std::wstring& text) {
  std::string out(static_cast<std::size_t>(WideCharToMultiByte(CP_UTF8, 0, text.data(), static_cast<int>(text.size()),
                                                               nullptr, 0, nullptr, nullptr)),
                  '\0');
  WideCharToMultiByte(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), out.data(), static_cast<int>(out.size()),
                      nullptr, nullptr);
  DWORD written;
  out += '\n';
  WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), out.data(), static_cast<DWORD>(out.size()), &written, nullptr);
}

bool IsHeld(const std::wstring& file) {
  const HANDLE handle = CreateFileW(file.c_str(), GENERIC_READ, 0, nullptr, OPEN_EXISTING, 0, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return GetLastError() == ERROR_SHARING_VIOLATION;
  CloseHandle(handle);
  return false;
}

// Up to five seconds.
bool Becomes(const std::wstring& file, bool held) {
  for (int i = 0; i < 500 && IsHeld(file) != held; ++i) Sleep(10);
  return IsHeld(file) == held;
}

// The tests' words need no more quoting than this.
std::wstring Line(const Words& words) {
  std::wstring line;
  for (const std::wstring& word : words) line += (line.empty() ? L"\"" : L" \"") + word + L"\"";
  return line;
}

HANDLE Start(const Words& words, bool inherit, DWORD flags) {
  STARTUPINFOW info = {};
  info.cb = sizeof(info);
  PROCESS_INFORMATION process;
  std::wstring line = Line(words);
  if (!CreateProcessW(nullptr, line.data(), nullptr, nullptr, inherit, flags, nullptr, nullptr, &info, &process)) {
    Say(L"cannot start " + words[0]);
    exit(3);
  }
  CloseHandle(process.hThread);
  return process.hProcess;
}

std::wstring Self() {
  wchar_t path[MAX_PATH];
  GetModuleFileNameW(nullptr, path, MAX_PATH);
  return path;
}

int CodeOf(HANDLE process) {
  DWORD code = 3;
  WaitForSingleObject(process, 30000);
  GetExitCodeProcess(process, &code);
  return static_cast<int>(code);
}

void Environ() {
  Words names;
  for (const wchar_t* entry = GetEnvironmentStringsW(); *entry != 0; entry += wcslen(entry) + 1) {
    const std::wstring text = entry;
    names.push_back(text.substr(0, text.find(L'=', 1)));
  }
  std::sort(names.begin(), names.end());
  std::wstring line;
  for (const std::wstring& name : names) line += name + L" ";
  Say(line);
}

int Socket() {
  WSADATA data;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  const int started = WSAStartup(MAKEWORD(2, 2), &data);
  const SOCKET made = socket(AF_INET, SOCK_STREAM, 0);
  const bool fine = started == 0 && made != INVALID_SOCKET &&
                    bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  Say(fine ? L"socket" : L"no socket");
  return 0;
}

int Hold(const std::wstring& file) {
  const HANDLE held = CreateFileW(file.c_str(), GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS, 0, nullptr);
  if (held == INVALID_HANDLE_VALUE) return 3;
  Sleep(60000);  // ends one that nobody killed
  return 0;
}

int WithHandle(Words words) {
  SECURITY_ATTRIBUTES inherit = {sizeof(inherit), nullptr, TRUE};
  // A number that no program has by itself.
  HANDLE event = nullptr;
  while (reinterpret_cast<unsigned long long>(event) < 4096) event = CreateEventW(&inherit, FALSE, FALSE, nullptr);
  for (std::wstring& word : words) {
    if (word == L"@") word = std::to_wstring(reinterpret_cast<unsigned long long>(event));
  }
  return CodeOf(Start(words, true, 0));
}

void Token() {
  HANDLE token = nullptr;
  std::vector<char> space(1 << 16);
  DWORD bytes;
  OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token);
  GetTokenInformation(token, TokenPrivileges, space.data(), static_cast<DWORD>(space.size()), &bytes);
  const auto* const has = reinterpret_cast<const TOKEN_PRIVILEGES*>(space.data());
  std::wstring line;
  for (DWORD i = 0; i < has->PrivilegeCount; ++i) {
    LUID luid = has->Privileges[i].Luid;
    wchar_t name[64];
    DWORD length = 64;
    line += LookupPrivilegeNameW(nullptr, &luid, name, &length) ? std::wstring(name) + L" " : L"? ";
  }
  char sid[SECURITY_MAX_SID_SIZE];
  DWORD size = sizeof(sid);
  BOOL member = FALSE;
  CreateWellKnownSid(WinBuiltinAdministratorsSid, nullptr, sid, &size);
  CheckTokenMembership(nullptr, sid, &member);
  Say(line + (member ? L"administrator" : L"no administrator"));
}

// Of this process alone, in user mode.
void Burn(int seconds) {
  FILETIME begin, end, kernel, user;
  do {
    for (volatile int i = 0; i < 1000000; ++i) {
    }
    GetProcessTimes(GetCurrentProcess(), &begin, &end, &kernel, &user);
  } while ((static_cast<unsigned long long>(user.dwHighDateTime) << 32 | user.dwLowDateTime) < seconds * 10000000ULL);
  Say(L"burnt");
}

int KillLauncher(const std::wstring& file, const Words& command) {
  const HANDLE launcher = Start(command, false, 0);
  if (!Becomes(file, true)) return 3;
  TerminateProcess(launcher, 1);
  WaitForSingleObject(launcher, 30000);
  return 0;
}

}  // namespace

int wmain(int argc, wchar_t** argv) {
  if (argc < 2) return 64;
  const std::wstring what = argv[1];
  const Words words(argv + 2, argv + argc);
  const bool has_one = !words.empty();
  if (what == L"argv") {
    std::wstring line;
    for (const std::wstring& word : words) line += L"[" + word + L"]";
    Say(line);
    return 0;
  }
  if (what == L"line") return Say(GetCommandLineW()), 0;
  if (what == L"environ") return Environ(), 0;
  if (what == L"socket") return Socket();
  if (what == L"token") return Token(), 0;
  if (what == L"stay") return Sleep(600000), 0;  // ends one that nobody killed
  if (what == L"started") {
    std::wstring line = Line({Self(), L"exit", L"0"});
    STARTUPINFOW info = {};
    info.cb = sizeof(info);
    PROCESS_INFORMATION process;
    const bool made =
        CreateProcessW(nullptr, line.data(), nullptr, nullptr, FALSE, 0, nullptr, nullptr, &info, &process);
    return Say(made && CodeOf(process.hProcess) == 0 ? L"started" : L"refused"), 0;
  }
  if (!has_one) return 64;
  if (what == L"commit") {
    const SIZE_T bytes = static_cast<SIZE_T>(_wtoi(words[0].c_str())) << 20;
    const void* const memory = VirtualAlloc(nullptr, bytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    return Say(memory != nullptr ? L"committed" : L"refused"), 0;
  }
  if (what == L"unit") return static_cast<int>(words[0][0] >> 8);
  if (what == L"exit") return _wtoi(words[0].c_str());
  if (what == L"burn") return Burn(_wtoi(words[0].c_str())), 0;
  if (what == L"link" && words.size() == 2) {
    return CreateSymbolicLinkW(words[0].c_str(), words[1].c_str(), 0) ? 0 : static_cast<int>(GetLastError());
  }
  if (what == L"hold") return Hold(words[0]);
  if (what == L"is-held") return Say(Becomes(words[0], false) ? L"free" : L"held"), 0;
  if (what == L"tree" || what == L"break-away") {
    Start({Self(), L"hold", words[0]}, false,
          DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP | (what == L"tree" ? 0 : CREATE_BREAKAWAY_FROM_JOB));
    return Becomes(words[0], true) ? 0 : 3;
  }
  if (what == L"complain" && words.size() == 2) {
    const std::string text(words[0].begin(), words[0].end());
    DWORD written;
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), text.data(), static_cast<DWORD>(text.size()), &written, nullptr);
    return _wtoi(words[1].c_str());
  }
  if (what == L"linger" && words.size() > 1) {
    CodeOf(Start(Words(words.begin() + 1, words.end()), true, 0));
    return Hold(words[0]);
  }
  if (what == L"serve" && words.size() > 1) {
    Start({Self(), L"hold", words[0]}, false, DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
    return Becomes(words[0], true) ? CodeOf(Start(Words(words.begin() + 1, words.end()), true, 0)) : 3;
  }
  if (what == L"handle") {
    DWORD flags = 0;
    const HANDLE handle = reinterpret_cast<HANDLE>(_wcstoui64(words[0].c_str(), nullptr, 10));
    return Say(GetHandleInformation(handle, &flags) ? L"inherited" : L"not inherited"), 0;
  }
  if (what == L"with-handle") return WithHandle(words);
  if (what == L"unpaired") {
    Words halved = words;
    std::replace(halved.begin(), halved.end(), std::wstring(L"@"), std::wstring(1, static_cast<wchar_t>(0xD800)));
    return CodeOf(Start(halved, false, 0));
  }
  if (what == L"kill-launcher") return KillLauncher(words[0], Words(words.begin() + 1, words.end()));
  return 64;
}
