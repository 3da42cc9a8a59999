#include "bulkhead/policy/env_names.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "bulkhead/policy/glob.h"

namespace bulkhead::policy {
namespace {

// By who reads it. Globs. The sources are the programs' own
// manuals, glibc's list for setuid programs (sysdeps/generic/unsecvars.h) and sudo's (sudoers(5), "env_delete").
// Variables that only name data (TZDIR, SSL_CERT_FILE, NODE_EXTRA_CA_CERTS) are not here, nor are those that name a
// program for people (EDITOR, PAGER), which the jail has to have granted.
constexpr absl::string_view kInjection[] = {
    // The loaders and C libraries, and what they load.
    "LD_*", "DYLD_*", "LDR_*", "LIBPATH", "SHLIB_PATH", "_RLD*", "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES",
    "HOSTALIASES", "LOCALDOMAIN", "LOCPATH", "MALLOC_TRACE", "NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS",
    "KRB5_CONFIG", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", "SASL_PATH",
    // Toolkits' modules.
    "GIO_EXTRA_MODULES", "GIO_MODULE_DIR", "GST_PLUGIN_*", "GTK*_MODULES", "GTK_PATH", "LIBGL_DRIVERS_PATH",
    "QML2_IMPORT_PATH", "QT_PLUGIN_PATH", "QT_QPA_PLATFORM_PLUGIN_PATH", "VK_ADD_LAYER_PATH", "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES", "VK_LAYER_PATH",
    // Shells, less, make.
    "BASH_ENV", "BASHOPTS", "CDPATH", "ENV", "FPATH", "GLOBIGNORE", "IFS", "PROMPT_COMMAND", "PS4", "SHELLOPTS",
    "ZDOTDIR", "LESSCLOSE", "LESSOPEN", "GNUMAKEFLAGS", "MAKEFILES", "MAKEFLAGS",
    // Node, Bun and what is built on them. A compile cache is code.
    "BUN_INSPECT*", "BUN_OPTIONS", "ELECTRON_RUN_AS_NODE", "NODE_COMPILE_CACHE", "NODE_OPTIONS", "NODE_PATH",
    "NODE_REDIRECT_WARNINGS", "NODE_REPL_EXTERNAL_MODULE", "NODE_V8_COVERAGE",
    // Python.
    "PYTHONBREAKPOINT", "PYTHONEXECUTABLE", "PYTHONHOME", "PYTHONINSPECT", "PYTHONPATH", "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONWARNINGS", "PYTHON_PRESITE", "PIP_CONFIG_FILE",
    "UV_CONFIG_FILE",
    // Ruby, Perl, Lua, PHP, R, Julia, Erlang.
    "BUNDLE_GEMFILE", "GEM_HOME", "GEM_PATH", "RUBYLIB", "RUBYOPT", "RUBYSHELL", "PERL5DB", "PERL5LIB", "PERL5OPT",
    "PERL5SHELL", "PERLIO_DEBUG", "PERLLIB", "LUA_CPATH*", "LUA_INIT*", "LUA_PATH*", "PHPRC", "PHP_INI_SCAN_DIR",
    "R_ENVIRON*", "R_LIBS*", "R_PROFILE*", "JULIA_DEPOT_PATH", "JULIA_LOAD_PATH", "ELIXIR_ERL_OPTIONS", "ERL_*FLAGS",
    "ERL_LIBS",
    // Java and .NET.
    "CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "COR_*", "CORECLR_*",
    "DOTNET_ADDITIONAL_DEPS", "DOTNET_STARTUP_HOOKS",
    // Compilers' wrappers: Go, Rust.
    "CARGO_BUILD_RUSTC*", "GOFLAGS", "RUSTC_*WRAPPER",
    // git: what it runs, configuration, which names things to run, and where it writes.
    "GIT_ALLOW_PROTOCOL", "GIT_ASKPASS", "GIT_COMMON_DIR", "GIT_CONFIG*", "GIT_DIR", "GIT_EDITOR", "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_PROXY_COMMAND", "GIT_REDIRECT_*", "GIT_SEQUENCE_EDITOR", "GIT_SSH",
    "GIT_SSH_COMMAND", "GIT_TEMPLATE_DIR", "GIT_TRACE*", "SSH_ASKPASS", "SUDO_ASKPASS",
    // The way out of Linux into Windows.
    "WSL_INTEROP"};

// So that most entries need no more than a look at their first character.
constexpr bool AllBeginWithThemselves() {
  for (const absl::string_view entry : kInjection) {
    if (entry.empty() || entry[0] == '*' || entry[0] == '?') return false;
  }
  return true;
}
static_assert(AllBeginWithThemselves());

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

absl::string_view WhyNpmNever(absl::string_view name) {
  if (!absl::StartsWithIgnoreCase(name, kNpmPrefix)) return "";
  std::string option = absl::AsciiStrToLower(name.substr(kNpmPrefix.size()));
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

std::string FoldEnvName(absl::string_view name, Platform platform) {
  return platform == Platform::kWindows ? absl::AsciiStrToUpper(name) : std::string(name);
}

absl::string_view WhyNeverInherited(absl::string_view name, bool ignore_case) {
  const std::string folded = ignore_case ? absl::AsciiStrToUpper(name) : std::string(name);
  if (folded.empty()) return "";
  for (const absl::string_view entry : kInjection) {
    if (entry[0] == folded[0] && GlobMatches(entry, folded)) return kRunsOtherCode;
  }
  return WhyNpmNever(name);
}

absl::string_view WhyValueNeverInherited(absl::string_view name, absl::string_view value) {
  const std::string folded = absl::AsciiStrToUpper(name);
  const bool is_source = (absl::StartsWith(folded, "NPM_CONFIG_") && absl::StrContains(folded, "REGISTRY")) ||
                         std::any_of(std::begin(kPackageSources), std::end(kPackageSources),
                                     [&](absl::string_view entry) { return GlobMatches(entry, folded); });
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
