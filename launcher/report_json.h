// A report as the JSON of `--report`.
#ifndef BULKHEAD_LAUNCHER_REPORT_JSON_H_
#define BULKHEAD_LAUNCHER_REPORT_JSON_H_

#include <string>

#include "bulkhead/launcher/plan.h"

namespace bulkhead::launcher {

// The report's JSON up to the point where the keeper appends how it ended.
std::string ReportJsonHead(const EnforcementReport& report, const std::string& program);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_REPORT_JSON_H_
