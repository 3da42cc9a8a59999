#include "bulkhead/policy/env_names.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace bulkhead::policy {
namespace {

// One a line or a family a line, by who reads it. An entry that ends with '*' stands for all names that begin so. The
// sources are the programs' own manuals, glibc's list for setuid programs (sysdeps/generic/unsecvars.h) and sudo's
// (sudoers(5), "env_delete"). Variables that only name data (TZDIR, SSL_CERT_FILE, NODE_EXTRA_CA_CERTS) are not here.
constexpr absl::string_view kInjection[] = {
    // The loaders and C libraries.
    "LD_*", "DYLD_*", "LDR_*", "LIBPATH", "SHLIB_PATH", "_RLD*", "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES",
    "HOSTALIASES", "LOCALDOMAIN", "LOCPATH", "MALLOC_TRACE", "NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS",
    "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES",
    // Shells.
    "BASH_ENV", "BASHOPTS", "CDPATH", "ENV", "FPATH", "GLOBIGNORE", "IFS", "PROMPT_COMMAND", "PS4", "SHELLOPTS",
    "ZDOTDIR",
    // Node, Bun and what is built on them.
    "BUN_INSPECT*", "BUN_OPTIONS", "ELECTRON_RUN_AS_NODE", "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE",
    // Python.
    "PYTHONBREAKPOINT", "PYTHONEXECUTABLE", "PYTHONHOME", "PYTHONINSPECT", "PYTHONPATH", "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONWARNINGS", "PYTHON_PRESITE",
    // Ruby, Perl, Lua, PHP.
    "BUNDLE_GEMFILE", "GEM_HOME", "GEM_PATH", "RUBYLIB", "RUBYOPT", "RUBYSHELL", "PERL5DB", "PERL5LIB", "PERL5OPT",
    "PERL5SHELL", "PERLIO_DEBUG", "PERLLIB", "LUA_CPATH*", "LUA_INIT*", "LUA_PATH*", "PHPRC", "PHP_INI_SCAN_DIR",
    // Java and .NET.
    "CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CORECLR_*", "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_STARTUP_HOOKS",
    // git: what it runs, and configuration, which names things to run.
    "GIT_ASKPASS", "GIT_CONFIG*", "GIT_DIR", "GIT_EDITOR", "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_PAGER",
    "GIT_PROXY_COMMAND", "GIT_SEQUENCE_EDITOR", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_TEMPLATE_DIR", "SSH_ASKPASS",
    "SUDO_ASKPASS"};

// npm reads its options from the environment without regard to case and with '-' as '_' (npm's config(7)).
constexpr absl::string_view kNpmPrefix = "npm_config_";
constexpr absl::string_view kNpmInjection[] = {"browser",      "editor",       "git",   "globalconfig", "init_module",
                                               "node_options", "script_shell", "shell", "userconfig",   "viewer"};

// Addresses that packages come from, for uv and pip; npm's are its options whose names hold "registry". A proxy's is
// not among them: without its password nothing can be reached.
constexpr absl::string_view kPackageSources[] = {"PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "UV_DEFAULT_INDEX",
                                                 "UV_EXTRA_INDEX_URL",  "UV_FIND_LINKS", "UV_INDEX*"};

constexpr absl::string_view kRunsOtherCode = "makes other programs run other code";
constexpr absl::string_view kCredential = "holds a credential";

bool Matches(absl::string_view entry, absl::string_view name) {
  return absl::ConsumeSuffix(&entry, "*") ? absl::StartsWith(name, entry) : name == entry;
}

absl::string_view WhyNpmNever(absl::string_view name) {
  std::string option = absl::AsciiStrToLower(name);
  if (!absl::StartsWith(option, kNpmPrefix)) return "";
  option.erase(0, kNpmPrefix.size());
  std::replace(option.begin(), option.end(), '-', '_');
  // _auth, _authToken, _password; and the same for one registry: //registry.example/:_authToken.
  if (absl::StartsWith(option, "_") || absl::StartsWith(option, "//")) return kCredential;
  const bool injects = std::find(std::begin(kNpmInjection), std::end(kNpmInjection), option) != std::end(kNpmInjection);
  return injects ? kRunsOtherCode : absl::string_view();
}

}  // namespace

bool IsEnvName(absl::string_view name) {
  constexpr absl::string_view kNever = "=${}*?\"'`\\";
  return !name.empty() && name.size() <= kEnvNameBytesMax && std::all_of(name.begin(), name.end(), [&](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && kNever.find(c) == absl::string_view::npos;
  });
}

absl::string_view WhyNeverInherited(absl::string_view name, bool ignore_case) {
  const std::string folded = ignore_case ? absl::AsciiStrToUpper(name) : std::string(name);
  for (const absl::string_view entry : kInjection) {
    if (Matches(entry, folded)) return kRunsOtherCode;
  }
  return WhyNpmNever(name);
}

absl::string_view WhyValueNeverInherited(absl::string_view name, absl::string_view value) {
  const std::string folded = absl::AsciiStrToUpper(name);
  const bool is_source = (absl::StartsWith(folded, "NPM_CONFIG_") && absl::StrContains(folded, "REGISTRY")) ||
                         std::any_of(std::begin(kPackageSources), std::end(kPackageSources),
                                     [&](absl::string_view entry) { return Matches(entry, folded); });
  if (!is_source) return "";
  // scheme://user:password@host/..., perhaps one of several.
  for (std::size_t at = value.find("://"); at != absl::string_view::npos; at = value.find("://", at)) {
    at += 3;
    const std::size_t end = value.find_first_of("/@ \t\n,?#", at);
    if (end != absl::string_view::npos && value[end] == '@') return kCredential;
  }
  return "";
}

bool IsFunctionName(absl::string_view name) { return absl::StartsWith(name, "BASH_FUNC_"); }

bool IsFunctionValue(absl::string_view value) { return absl::StartsWith(value, "()"); }

}  // namespace bulkhead::policy
