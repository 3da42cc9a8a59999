// The command never uses std::cin, std::cout, std::cerr or std::clog, and so need not set them up: that would take 100
// to 240 us of every start, a twentieth of a whole `run`. Every source that includes <iostream> asks for it, and
// abseil's headers do (absl/status/status.h). Until its version 13 libstdc++ does it in this constructor, and whoever
// defines it first is taken by the linker; files and string streams set up their locale by themselves. Later versions
// do it in an object of their own, which can't be left out.
//
// Only for the command's own binary: a library must not decide this for its host.
#include <ios>

#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE < 13
std::ios_base::Init::Init() {}
std::ios_base::Init::~Init() {}
#endif
