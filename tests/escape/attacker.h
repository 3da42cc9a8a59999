// What the files of the program `attacker` share: see attacker.cc.
#ifndef BULKHEAD_TESTS_ESCAPE_ATTACKER_H_
#define BULKHEAD_TESTS_ESCAPE_ATTACKER_H_

#include <sys/types.h>

#include <string>

namespace bulkhead::escape {

// What the stage has at hand: the words `key=value` of the command line. "" when there is none.
const char* Given(const char* key);
std::string Path(const char* key, const char* below);  // Given(key) + "/" + below
pid_t GivenPid(const char* key);

// How an attack ends; each prints its line and gives the exit code.
int Got(const char* what = "");
int Held(int error);
int Held(const char* why);
int Untried(const char* feature);  // what the kernel or the machine lacks, so that nobody could do it here
int GotIf(bool got);               // else Held(errno)

// The marks of the stage: what a secret file holds, and what an attack leaves where it may not write.
inline constexpr char kSecretMark[] = "the-secret-of-this-stage";
inline constexpr char kEvilMark[] = "written-by-the-attacker";

// Whether the file, or what can be read from fd, holds the mark.
int GotIfReads(const char* path, const char* mark = kSecretMark);
int GotIfFdReads(int fd, const char* mark = kSecretMark);
// Writes kEvilMark; closes fd.
int GotIfWrites(int fd);
std::string Slurp(const char* path);

// The stage's process that stands for Bulkhead's jail init (our parent) and keeper (its parent; 0: not to be seen).
pid_t Init();
pid_t Keeper();

struct Attack {
  const char* name;
  int (*run)();
};

extern const Attack kFileAttacks[];  // each list ends with an entry whose name is null
extern const Attack kProcessAttacks[];
extern const Attack kDescriptorAttacks[];
extern const Attack kNetworkAttacks[];
extern const Attack kKernelAttacks[];
extern const Attack kOtherAttacks[];

}  // namespace bulkhead::escape

#endif  // BULKHEAD_TESTS_ESCAPE_ATTACKER_H_
