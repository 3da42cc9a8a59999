// Attacks on files: what was not granted is read, changed, found or looked up; what was granted to read is changed;
// what may not run runs.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "attacker.h"

namespace bulkhead::escape {
namespace {

// home: a folder that was not granted. Holds .ssh/id_test.
// work: granted to read and write. data: granted to read. project: as work, with .git protected and .env hidden.
std::string Key() { return Path("home", ".ssh/id_test"); }
std::string Work(const char* name) { return Path("work", name); }
std::string Data(const char* name) { return Path("data", name); }
std::string Project(const char* name) { return Path("project", name); }

int Open(const std::string& path, int flags, mode_t mode = 0600) { return open(path.c_str(), flags | O_CLOEXEC, mode); }
int Read(const std::string& path) { return GotIfReads(path.c_str()); }

// ---- Reading what was not granted

int ReadKey() { return Read(Key()); }
int ReadDotDot() { return Read(Work("../home/.ssh/id_test")); }
int ReadDotDotFromCwd() {
  if (chdir(Given("work")) != 0) return Held(errno);
  return Read("../home/.ssh/id_test");
}
int ReadThroughLink() {
  if (symlink(Key().c_str(), Work("link").c_str()) != 0) return Held(errno);
  return Read(Work("link"));
}
int ReadThroughPlantedLink() { return Read(Work("planted")); }           // made by the host, as in a cloned repository
int ReadThroughFolderLink() { return Read(Work("home/.ssh/id_test")); }  // the same, of a folder
int ReadThroughProcRoot() { return Read("/proc/self/root" + Key()); }
int ReadThroughProcCwd() {
  if (chdir(Given("work")) != 0) return Held(errno);
  return Read("/proc/self/cwd/../home/.ssh/id_test");
}
int ReadThroughParentRoot() { return Read("/proc/" + std::to_string(getppid()) + "/root" + Key()); }
int ReadThroughPidOneRoot() { return Read("/proc/1/root" + Key()); }
int ReadThroughVictimRoot() { return Read("/proc/" + std::to_string(GivenPid("victim")) + "/root" + Key()); }
int ReadThroughVictimCwd() { return Read("/proc/" + std::to_string(GivenPid("victim")) + "/cwd/id_test"); }
int ReadThroughVictimFd() { return Read("/proc/" + std::to_string(GivenPid("victim")) + "/fd/" + Given("victim_fd")); }
int ReadThroughVictimThread() {
  return Read("/proc/" + std::to_string(GivenPid("victim")) + "/task/" + Given("victim") + "/cwd/id_test");
}

int ReadThroughHardLink() {
  if (link(Key().c_str(), Work("hard").c_str()) != 0) return Held(errno);
  return Read(Work("hard"));
}
int ReadThroughLinkOfDescriptor() {
  const int fd = Open(Key(), O_PATH);
  if (fd < 0) return Held(errno);
  const std::string magic = "/proc/self/fd/" + std::to_string(fd);
  if (linkat(AT_FDCWD, magic.c_str(), AT_FDCWD, Work("hard").c_str(), AT_SYMLINK_FOLLOW) != 0) return Held(errno);
  return Read(Work("hard"));
}
int ReopenPathDescriptor() {
  const int fd = Open(Key(), O_PATH);
  if (fd < 0) return Held(errno);
  return Read("/proc/self/fd/" + std::to_string(fd));
}
int ReadBelowPathDescriptor() {
  const int folder = Open(Path("home", ".ssh"), O_PATH | O_DIRECTORY);
  if (folder < 0) return Held(errno);
  return GotIfFdReads(openat(folder, "id_test", O_RDONLY | O_CLOEXEC));
}
int ReadBelowChdir() {
  if (chdir(Path("home", ".ssh").c_str()) != 0) return Held(errno);
  return Read("id_test");
}
int ReadByOpenat2() {
  struct {
    unsigned long long flags, mode, resolve;
  } how = {O_RDONLY | O_CLOEXEC, 0, 0};
  return GotIfFdReads(static_cast<int>(syscall(437, AT_FDCWD, Key().c_str(), &how, sizeof how)));
}
int RenameIn() {
  if (rename(Key().c_str(), Work("moved").c_str()) != 0) return Held(errno);
  return Read(Work("moved"));
}
int RenameParentIn() {
  if (rename(Path("home", ".ssh").c_str(), Work("moved").c_str()) != 0) return Held(errno);
  return Read(Work("moved/id_test"));
}
int ExchangeIn() {
  if (GotIfWrites(Open(Work("bait"), O_CREAT | O_WRONLY)) != 0) return 1;
  if (renameat2(AT_FDCWD, Key().c_str(), AT_FDCWD, Work("bait").c_str(), RENAME_EXCHANGE) != 0) return Held(errno);
  return Read(Work("bait"));
}
int SendfileFromKey() {
  const int fd = Open(Key(), O_RDONLY);
  if (fd < 0) return Held(errno);
  const int to = Open(Work("copy"), O_CREAT | O_RDWR);
  if (to < 0 || copy_file_range(fd, nullptr, to, nullptr, 4096, 0) <= 0) return Held(errno);
  return Read(Work("copy"));
}
int MapKey() {
  const int fd = Open(Key(), O_RDONLY);
  if (fd < 0) return Held(errno);
  const void* map = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  if (map == MAP_FAILED) return Held(errno);
  return memmem(map, 4096, kSecretMark, strlen(kSecretMark)) != nullptr ? Got() : Held("");
}
int ExecutableFromOutside() {
  const pid_t child = fork();
  if (child == 0) {
    execl(Path("home", "tool").c_str(), "tool", "--list", nullptr);
    _exit(100 + (errno == ENOENT ? 1 : 0));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Got() : Held(WEXITSTATUS(status) == 101 ? ENOENT : EACCES);
}

// A name that is now a folder of ours, now a link to theirs.
void* SwapForEver(void*) {
  const std::string link = Work("swap-link"), folder = Work("swap-folder"), name = Work("swap");
  while (true) {
    renameat2(AT_FDCWD, link.c_str(), AT_FDCWD, name.c_str(), RENAME_EXCHANGE);
    renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, name.c_str(), RENAME_EXCHANGE);
  }
  return nullptr;
}
int SwapLinks() {
  mkdir(Work("swap").c_str(), 0700);
  mkdir(Work("swap-folder").c_str(), 0700);
  if (symlink(Path("home", ".ssh").c_str(), Work("swap-link").c_str()) != 0) return Held(errno);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, SwapForEver, nullptr) != 0) return Held("no thread");
  int error = 0;
  for (int i = 0; i < 20000; ++i) {
    const int fd = Open(Work("swap/id_test"), O_RDONLY);
    if (fd >= 0) return GotIfFdReads(fd);
    if (errno != ENOENT) error = errno;
  }
  return Held(error != 0 ? error : ENOENT);
}

int ReadShadow() { return GotIfReads("/etc/shadow", "root:"); }
int ReadHostTmp() { return Read(Given("host_tmp")); }
int ReadHostShm() { return Read(Given("host_shm")); }
int ReadEnvironmentOfPidOne() { return GotIf(Open("/proc/1/environ", O_RDONLY) >= 0 && getpid() != 1); }

// ---- Learning that it exists

int StatKey() {
  struct stat info;
  return GotIf(stat(Key().c_str(), &info) == 0);
}
int AccessKey() { return GotIf(access(Key().c_str(), F_OK) == 0); }
int ReadlinkOutside() {
  char target[4096];
  return GotIf(readlink(Path("home", "link").c_str(), target, sizeof target) > 0);
}
int ListFolder(const std::string& path, const char* name) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return Held(errno);
  while (const dirent* entry = readdir(folder)) {
    if (strcmp(entry->d_name, name) == 0) return Got();
  }
  return Held(ENOENT);
}
int ListKeys() { return ListFolder(Path("home", ".ssh"), "id_test"); }
int ListHome() { return ListFolder(Given("home"), ".ssh"); }
int ListAround() { return ListFolder(Work(".."), "run"); }
int ListHostTmp() { return ListFolder("/tmp", strrchr(Given("host_tmp"), '/') + 1); }
int WatchFolder() {
  const int fd = inotify_init1(IN_CLOEXEC);
  return GotIf(fd >= 0 && inotify_add_watch(fd, Path("home", ".ssh").c_str(), IN_ALL_EVENTS) >= 0);
}
struct Handle {
  struct file_handle head;
  char bytes[128];
};
int OpenByHandle() {
  // As in a container's breakout (shocker.c): any descriptor of the file system, and a handle that is guessed. Ours is
  // known to the stage, since guessing it is only a matter of time.
  Handle handle;
  int type = 0, at = 0;
  const char* text = Given("key_handle");
  if (sscanf(text, "%d:%n", &type, &at) != 1) return Untried("file handles of the test's file system");
  handle.head.handle_type = type;
  handle.head.handle_bytes = 0;
  for (text += at; text[0] != '\0' && text[1] != '\0'; text += 2) {
    unsigned byte = 0;
    sscanf(text, "%2x", &byte);
    handle.head.f_handle[handle.head.handle_bytes++] = static_cast<unsigned char>(byte);
  }
  const int mount = Open(Given("work"), O_RDONLY | O_DIRECTORY);
  if (mount < 0) return Held(errno);
  return GotIfFdReads(open_by_handle_at(mount, &handle.head, O_RDONLY));
}
int HandleOfKey() {
  Handle handle;
  int mount;
  handle.head.handle_bytes = sizeof handle.bytes;
  return GotIf(name_to_handle_at(AT_FDCWD, Key().c_str(), &handle.head, &mount, 0) == 0);
}

// ---- Changing what was not granted. The stage compares what is on the disk afterwards.

int WriteKey() { return GotIfWrites(Open(Key(), O_WRONLY)); }
int AppendToBashrc() { return GotIfWrites(Open(Path("home", ".bashrc"), O_WRONLY | O_APPEND)); }
int MakeFileInHome() { return GotIfWrites(Open(Path("home", ".config-of-evil"), O_WRONLY | O_CREAT | O_EXCL)); }
int MakeFileBesideKey() { return GotIfWrites(Open(Path("home", ".ssh/authorized_keys"), O_WRONLY | O_CREAT)); }
int MakeFileAround() { return GotIfWrites(Open(Work("../made"), O_WRONLY | O_CREAT)); }
int TruncateKey() { return GotIf(truncate(Key().c_str(), 0) == 0); }
int UnlinkKey() { return GotIf(unlink(Key().c_str()) == 0); }
int MkdirOutside() { return GotIf(mkdir(Path("home", ".ssh/made").c_str(), 0700) == 0); }
int RmdirOutside() { return GotIf(rmdir(Path("home", "empty").c_str()) == 0); }
int SymlinkOutside() { return GotIf(symlink("/", Path("home", ".ssh/made").c_str()) == 0); }
int FifoOutside() { return GotIf(mkfifo(Path("home", ".ssh/made").c_str(), 0600) == 0); }
int LinkOutside() {
  if (GotIfWrites(Open(Work("evil"), O_CREAT | O_WRONLY)) != 0) return 1;
  return GotIf(link(Work("evil").c_str(), Path("home", ".ssh/made").c_str()) == 0);
}
int RenameOut() {
  if (GotIfWrites(Open(Work("evil"), O_CREAT | O_WRONLY)) != 0) return 1;
  return GotIf(rename(Work("evil").c_str(), Path("home", ".ssh/made").c_str()) == 0);
}
int RenameOutside() { return GotIf(rename(Key().c_str(), Path("home", ".ssh/other").c_str()) == 0); }
int ChmodKey() { return GotIf(chmod(Key().c_str(), 0666) == 0); }
int ChownKey() { return GotIf(chown(Key().c_str(), static_cast<uid_t>(-1), getegid()) == 0); }
int TouchKey() {
  const timespec times[2] = {{1, 0}, {1, 0}};
  return GotIf(utimensat(AT_FDCWD, Key().c_str(), times, 0) == 0);
}
int SetxattrKey() { return GotIf(setxattr(Key().c_str(), "user.evil", "1", 1, 0) == 0); }
int ChmodByDescriptor() {
  const int fd = Open(Key(), O_PATH);
  if (fd < 0) return Held(errno);
  return GotIf(chmod(("/proc/self/fd/" + std::to_string(fd)).c_str(), 0666) == 0);
}
int WriteHostTmp() { return GotIfWrites(Open(Given("host_tmp"), O_WRONLY)); }
int WriteHostShm() { return GotIfWrites(Open(Given("host_shm"), O_WRONLY)); }
// A file without a name shows that files can be made there, and is gone with us.
int MakeFileInEtc() { return GotIfWrites(Open("/etc", O_WRONLY | O_TMPFILE)); }
int MakeFileInUsrBin() { return GotIfWrites(Open("/usr/bin", O_WRONLY | O_TMPFILE)); }
int MakeFileInVarTmp() { return GotIfWrites(Open("/var/tmp", O_WRONLY | O_TMPFILE)); }
int OpenPasswdForWriting() { return GotIf(Open("/etc/passwd", O_WRONLY) >= 0); }

// ---- Changing what was granted to read

int WriteDataFile() { return GotIfWrites(Open(Data("file"), O_WRONLY)); }
int TruncateDataFile() { return GotIf(truncate(Data("file").c_str(), 0) == 0); }
int UnlinkDataFile() { return GotIf(unlink(Data("file").c_str()) == 0); }
int MakeDataFile() { return GotIfWrites(Open(Data("made"), O_WRONLY | O_CREAT)); }
int RenameDataFileOut() { return GotIf(rename(Data("file").c_str(), Work("moved").c_str()) == 0); }
int RenameIntoData() {
  if (GotIfWrites(Open(Work("evil"), O_CREAT | O_WRONLY)) != 0) return 1;
  return GotIf(rename(Work("evil").c_str(), Data("file").c_str()) == 0);
}
int LinkDataFileOutAndWrite() {
  if (link(Data("file").c_str(), Work("hard").c_str()) != 0) return Held(errno);
  return GotIfWrites(Open(Work("hard"), O_WRONLY));
}
int ReopenDataFileForWriting() {
  const int fd = Open(Data("file"), O_RDONLY);
  if (fd < 0) return Held(errno);
  return GotIfWrites(Open("/proc/self/fd/" + std::to_string(fd), O_WRONLY));
}
int ChmodDataFile() { return GotIf(chmod(Data("file").c_str(), 0666) == 0); }
int TouchDataFile() {
  const timespec times[2] = {{1, 0}, {1, 0}};
  return GotIf(utimensat(AT_FDCWD, Data("file").c_str(), times, 0) == 0);
}
int SetxattrDataFile() { return GotIf(setxattr(Data("file").c_str(), "user.evil", "1", 1, 0) == 0); }

// ---- Protected and hidden parts of a grant

int WriteProtected() { return GotIfWrites(Open(Project("sub/.git/config"), O_WRONLY)); }
int MakeFileInProtected() { return GotIfWrites(Open(Project("sub/.git/hook"), O_WRONLY | O_CREAT)); }
int UnlinkProtected() { return GotIf(unlink(Project("sub/.git/config").c_str()) == 0); }
int RenameProtected() { return GotIf(rename(Project("sub/.git").c_str(), Project("sub/git").c_str()) == 0); }
int RenameParentOfProtected() {
  if (rename(Project("sub").c_str(), Project("old").c_str()) != 0) return Held(errno);
  mkdir(Project("sub").c_str(), 0755);
  mkdir(Project("sub/.git").c_str(), 0755);
  return GotIfWrites(Open(Project("sub/.git/config"), O_WRONLY | O_CREAT));
}
int LinkProtectedAndWrite() {
  if (link(Project("sub/.git/config").c_str(), Project("hard").c_str()) != 0) return Held(errno);
  return GotIfWrites(Open(Project("hard"), O_WRONLY));
}
int ChmodProtected() { return GotIf(chmod(Project("sub/.git/config").c_str(), 0666) == 0); }
int ReadHidden() { return Read(Project(".env")); }
int RenameHidden() {
  if (rename(Project(".env").c_str(), Project("env").c_str()) != 0) return Held(errno);
  return Read(Project("env"));
}
int LinkHidden() {
  if (link(Project(".env").c_str(), Project("env").c_str()) != 0) return Held(errno);
  return Read(Project("env"));
}
int UnmountHidden() {
  umount2(Project(".env").c_str(), MNT_DETACH);
  return Read(Project(".env"));
}

// ---- Running what was not granted to run

int ExitCodeOf(const char* const* words) {
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    dup2(null, 2);
    execv(words[0], const_cast<char* const*>(words));
    _exit(errno == EACCES ? 101 : 102);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
int GotIfRuns(const char* const* words) {
  const int code = ExitCodeOf(words);
  return code == 0 ? Got() : Held(code == 101 ? "EACCES" : "did not run");
}
bool CopyProgram(const char* from, const std::string& to) {
  const int in = open(from, O_RDONLY | O_CLOEXEC), out = Open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
  char block[65536];
  ssize_t count = 0;
  while (in >= 0 && out >= 0 && (count = read(in, block, sizeof block)) > 0) {
    if (write(out, block, static_cast<size_t>(count)) != count) return false;
  }
  const bool good = in >= 0 && out >= 0 && count == 0;
  close(in);
  close(out);
  return good;
}
int RunFromWork() {
  const std::string program = Work("program");
  if (!CopyProgram("/proc/self/exe", program)) return Held(errno);
  const char* const words[] = {program.c_str(), "--list", nullptr};
  return GotIfRuns(words);
}
int RunFromData() {
  const std::string program = Data("tool");
  const char* const words[] = {program.c_str(), "--list", nullptr};
  return GotIfRuns(words);
}
int RunFromTmp() {
  const char* tmp = getenv("TMPDIR");
  const std::string program = std::string(tmp != nullptr ? tmp : "/tmp") + "/bulkhead-escape-" + Given("token");
  if (!CopyProgram("/proc/self/exe", program)) return Held(errno);
  const char* const words[] = {program.c_str(), "--list", nullptr};
  const int code = GotIfRuns(words);
  unlink(program.c_str());
  return code;
}
int RunByLoader() {
  const char* const loader = "/lib64/ld-linux-x86-64.so.2";
  const std::string program = Work("program");
  if (!CopyProgram("/bin/true", program)) return Untried("ld.so and /bin/true");
  const char* const words[] = {loader, program.c_str(), nullptr};
  return GotIfRuns(words);
}
int MapWorkForExecution() {
  const std::string program = Work("code");
  if (!CopyProgram("/proc/self/exe", program)) return Held(errno);
  const int fd = Open(program, O_RDONLY);
  return GotIf(mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
}
int RunFromMemfd() {
  const int fd = memfd_create("program", 0);
  if (fd < 0 || !CopyProgram("/proc/self/exe", "/proc/self/fd/" + std::to_string(fd))) return Held(errno);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const char* const words[] = {path.c_str(), "--list", nullptr};
  return GotIfRuns(words);
}

// ---- Setuid

// Whether a setuid program of the system becomes root. A process that has ended still shows its uids.
int RunSetuidProgram() {
  struct stat info;
  if (stat("/usr/bin/su", &info) != 0 || (info.st_mode & S_ISUID) == 0) return Untried("a setuid /usr/bin/su");
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
    setsid();
    execl("/usr/bin/su", "su", "--version", nullptr);
    _exit(3);
  }
  siginfo_t end;
  waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT);
  const std::string status = Slurp(("/proc/" + std::to_string(child) + "/status").c_str());
  int uid = 0, euid = -1;
  const size_t at = status.find("Uid:");
  if (at != std::string::npos) sscanf(status.c_str() + at, "Uid: %d %d", &uid, &euid);
  waitpid(child, nullptr, 0);
  return euid == 0 ? Got() : Held("not root");
}
std::string NewWorkFile() {
  const std::string file = Work("suid");
  close(Open(file, O_CREAT | O_WRONLY, 0644));
  return file;
}
int PlantByChmod() { return GotIf(chmod(NewWorkFile().c_str(), 04755) == 0); }
int PlantSetgid() { return GotIf(chmod(NewWorkFile().c_str(), 02755) == 0); }
int PlantByFchmod() {
  const int fd = Open(NewWorkFile(), O_WRONLY);
  return GotIf(fd >= 0 && fchmod(fd, 04755) == 0);
}
int PlantByFchmodat2() {
  const std::string file = NewWorkFile();
  const long result = syscall(452, AT_FDCWD, file.c_str(), 04755, 0);
  if (result != 0 && errno == ENOSYS && Given("control")[0] == '1') return Untried("fchmodat2 (Linux 6.6)");
  return GotIf(result == 0);
}
int PlantByOpen() { return GotIf(Open(Work("suid"), O_CREAT | O_WRONLY | O_EXCL, 04755) >= 0); }
int PlantByOpenat2() {
  struct {
    unsigned long long flags, mode, resolve;
  } how = {O_CREAT | O_WRONLY, 04755, 0};
  return GotIf(syscall(437, AT_FDCWD, Work("suid").c_str(), &how, sizeof how) >= 0);
}
int PlantByMknod() { return GotIf(mknod(Work("suid").c_str(), S_IFREG | 04755, 0) == 0); }
int PlantByTmpfile() {
  const int fd = Open(Given("work"), O_TMPFILE | O_WRONLY, 04755);
  if (fd < 0) return Held(errno);
  return GotIf(linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd)).c_str(), AT_FDCWD, Work("suid").c_str(),
                      AT_SYMLINK_FOLLOW) == 0);
}
int PlantCapabilities() {
  // struct vfs_cap_data, revision 2: cap_sys_admin+ep.
  const unsigned int data[5] = {0x02000001, 1u << 21, 0, 0, 0};
  return GotIf(setxattr(NewWorkFile().c_str(), "security.capability", data, sizeof data, 0) == 0);
}
int PlantAsRoot() { return GotIf(chown(NewWorkFile().c_str(), 0, 0) == 0); }

// ---- Devices and the kernel's files, opened and not used

int OpensForReading(const char* path) { return GotIf(Open(path, O_RDONLY | O_NONBLOCK) >= 0); }
int OpensForWriting(const char* path) { return GotIf(Open(path, O_WRONLY | O_NONBLOCK) >= 0); }
int MakeDevice() {
  const std::string node = Work("device");
  if (mknod(node.c_str(), S_IFCHR | 0666, makedev(1, 5)) != 0) return Held(errno);
  const bool opens = Open(node, O_RDONLY) >= 0;
  return GotIf(opens);
}
int OpenKmsg() { return OpensForReading("/dev/kmsg"); }
int OpenMem() {
  return access("/dev/mem", F_OK) != 0 && Given("control")[0] == '1' ? Untried("/dev/mem")
                                                                     : OpensForReading("/dev/mem");
}
int OpenCorePattern() { return OpensForWriting("/proc/sys/kernel/core_pattern"); }
int OpenModprobe() {
  return access("/proc/sys/kernel/modprobe", F_OK) != 0 && Given("control")[0] == '1'
             ? Untried("/proc/sys/kernel/modprobe (CONFIG_MODULES)")
             : OpensForWriting("/proc/sys/kernel/modprobe");
}
int OpenSysctl() { return OpensForWriting("/proc/sys/kernel/randomize_va_space"); }
int OpenSysrq() { return OpensForWriting("/proc/sysrq-trigger"); }
int OpenDropCaches() { return OpensForWriting("/proc/sys/vm/drop_caches"); }
int OpenIpForward() { return OpensForWriting("/proc/sys/net/ipv4/ip_forward"); }
int OpenSysFile() { return OpensForWriting("/sys/kernel/mm/ksm/run"); }
int OpenKcore() { return OpensForReading("/proc/kcore"); }
int MountOverWork() {
  const std::string folder = Work("mounted");
  mkdir(folder.c_str(), 0700);
  if (mount(Given("home"), folder.c_str(), nullptr, MS_BIND, nullptr) != 0) return Held(errno);
  const int code = Read(folder + "/.ssh/id_test");
  umount2(folder.c_str(), MNT_DETACH);
  return code;
}
int RemountDataWritable() {
  const std::string data = Given("data");
  if (mount(data.c_str(), data.c_str(), nullptr, MS_BIND, nullptr) != 0) return Held(errno);
  const bool writable = mount(nullptr, data.c_str(), nullptr, MS_REMOUNT | MS_BIND, nullptr) == 0;
  const int error = errno;
  umount2(data.c_str(), MNT_DETACH);
  errno = error;
  return GotIf(writable);
}
int ChrootOut() {
  // The classic: a root below us, with the working folder left above it.
  const std::string below = Work("below");
  mkdir(below.c_str(), 0700);
  if (chroot(below.c_str()) != 0) return Held(errno);
  for (int i = 0; i < 64; ++i) {
    if (chdir("..") != 0) break;
  }
  return Read(Key().substr(1));
}

}  // namespace

const Attack kFileAttacks[] = {
    {"read_key", ReadKey},
    {"read_dot_dot", ReadDotDot},
    {"read_dot_dot_from_cwd", ReadDotDotFromCwd},
    {"read_through_link", ReadThroughLink},
    {"read_through_planted_link", ReadThroughPlantedLink},
    {"read_through_planted_folder_link", ReadThroughFolderLink},
    {"read_through_proc_self_root", ReadThroughProcRoot},
    {"read_through_proc_self_cwd", ReadThroughProcCwd},
    {"read_through_parents_root", ReadThroughParentRoot},
    {"read_through_pid_1_root", ReadThroughPidOneRoot},
    {"read_through_victims_root", ReadThroughVictimRoot},
    {"read_through_victims_cwd", ReadThroughVictimCwd},
    {"read_through_victims_descriptor", ReadThroughVictimFd},
    {"read_through_victims_thread", ReadThroughVictimThread},
    {"read_through_hard_link", ReadThroughHardLink},
    {"read_through_link_of_descriptor", ReadThroughLinkOfDescriptor},
    {"reopen_path_descriptor", ReopenPathDescriptor},
    {"read_below_path_descriptor", ReadBelowPathDescriptor},
    {"read_below_chdir", ReadBelowChdir},
    {"read_by_openat2", ReadByOpenat2},
    {"rename_key_in", RenameIn},
    {"rename_keys_folder_in", RenameParentIn},
    {"exchange_key_in", ExchangeIn},
    {"copy_file_range_from_key", SendfileFromKey},
    {"map_key", MapKey},
    {"run_program_of_home", ExecutableFromOutside},
    {"swap_links", SwapLinks},
    {"read_shadow", ReadShadow},
    {"read_hosts_tmp", ReadHostTmp},
    {"read_hosts_shared_memory", ReadHostShm},
    {"open_environment_of_pid_1", ReadEnvironmentOfPidOne},
    {"stat_key", StatKey},
    {"access_key", AccessKey},
    {"readlink_in_home", ReadlinkOutside},
    {"list_keys", ListKeys},
    {"list_home", ListHome},
    {"list_around_grant", ListAround},
    {"list_hosts_tmp", ListHostTmp},
    {"watch_keys", WatchFolder},
    {"open_by_handle", OpenByHandle},
    {"handle_of_key", HandleOfKey},
    {"write_key", WriteKey},
    {"append_to_bashrc", AppendToBashrc},
    {"make_file_in_home", MakeFileInHome},
    {"make_file_beside_key", MakeFileBesideKey},
    {"make_file_around_grant", MakeFileAround},
    {"truncate_key", TruncateKey},
    {"unlink_key", UnlinkKey},
    {"mkdir_beside_key", MkdirOutside},
    {"rmdir_in_home", RmdirOutside},
    {"symlink_beside_key", SymlinkOutside},
    {"fifo_beside_key", FifoOutside},
    {"link_beside_key", LinkOutside},
    {"rename_out", RenameOut},
    {"rename_key", RenameOutside},
    {"chmod_key", ChmodKey},
    {"chmod_key_by_descriptor", ChmodByDescriptor},
    {"chown_key", ChownKey},
    {"touch_key", TouchKey},
    {"setxattr_key", SetxattrKey},
    {"write_hosts_tmp", WriteHostTmp},
    {"write_hosts_shared_memory", WriteHostShm},
    {"make_file_in_etc", MakeFileInEtc},
    {"make_file_in_usr_bin", MakeFileInUsrBin},
    {"make_file_in_var_tmp", MakeFileInVarTmp},
    {"open_passwd_for_writing", OpenPasswdForWriting},
    {"write_data_file", WriteDataFile},
    {"truncate_data_file", TruncateDataFile},
    {"unlink_data_file", UnlinkDataFile},
    {"make_data_file", MakeDataFile},
    {"rename_data_file_out", RenameDataFileOut},
    {"rename_into_data", RenameIntoData},
    {"link_data_file_out_and_write", LinkDataFileOutAndWrite},
    {"reopen_data_file_for_writing", ReopenDataFileForWriting},
    {"chmod_data_file", ChmodDataFile},
    {"touch_data_file", TouchDataFile},
    {"setxattr_data_file", SetxattrDataFile},
    {"write_protected", WriteProtected},
    {"make_file_in_protected", MakeFileInProtected},
    {"unlink_protected", UnlinkProtected},
    {"rename_protected", RenameProtected},
    {"rename_parent_of_protected", RenameParentOfProtected},
    {"link_protected_and_write", LinkProtectedAndWrite},
    {"chmod_protected", ChmodProtected},
    {"read_hidden", ReadHidden},
    {"rename_hidden", RenameHidden},
    {"link_hidden", LinkHidden},
    {"unmount_hidden", UnmountHidden},
    {"run_from_work", RunFromWork},
    {"run_from_data", RunFromData},
    {"run_from_tmp", RunFromTmp},
    {"run_by_loader", RunByLoader},
    {"map_work_for_execution", MapWorkForExecution},
    {"run_from_memfd", RunFromMemfd},
    {"run_setuid_program", RunSetuidProgram},
    {"plant_setuid_by_chmod", PlantByChmod},
    {"plant_setgid_by_chmod", PlantSetgid},
    {"plant_setuid_by_fchmod", PlantByFchmod},
    {"plant_setuid_by_fchmodat2", PlantByFchmodat2},
    {"plant_setuid_by_open", PlantByOpen},
    {"plant_setuid_by_openat2", PlantByOpenat2},
    {"plant_setuid_by_mknod", PlantByMknod},
    {"plant_setuid_by_tmpfile", PlantByTmpfile},
    {"plant_capabilities", PlantCapabilities},
    {"give_file_to_root", PlantAsRoot},
    {"make_device", MakeDevice},
    {"open_dev_kmsg", OpenKmsg},
    {"open_dev_mem", OpenMem},
    {"open_core_pattern", OpenCorePattern},
    {"open_modprobe", OpenModprobe},
    {"open_sysctl", OpenSysctl},
    {"open_sysrq_trigger", OpenSysrq},
    {"open_drop_caches", OpenDropCaches},
    {"open_ip_forward", OpenIpForward},
    {"open_sys_file", OpenSysFile},
    {"open_kcore", OpenKcore},
    {"mount_home_over_work", MountOverWork},
    {"remount_data_writable", RemountDataWritable},
    {"chroot_out", ChrootOut},
    {nullptr, nullptr},
};

}  // namespace bulkhead::escape
