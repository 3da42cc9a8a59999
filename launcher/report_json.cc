#include "bulkhead/launcher/report_json.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace bulkhead::launcher {
namespace {

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", std::string(1, c));
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppend(&out, absl::StrFormat("\\u%04x", static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

const char* StateName(LayerState state) {
  switch (state) {
    case LayerState::kFull:
      return "full";
    case LayerState::kPartial:
      return "partial";
    case LayerState::kNone:
      return "none";
  }
  return "";
}

}  // namespace

std::string ReportJsonHead(const EnforcementReport& report, const std::string& program) {
  std::string out = absl::StrCat("{\"bulkhead_report\":1,\"program\":", Quoted(program),
                                 ",\"tier\":", Quoted(policy::TierName(report.tier)),
                                 ",\"network\":", Quoted(report.network), ",\"layers\":[");
  for (const LayerReport& layer : report.layers) {
    absl::StrAppend(&out, out.back() == '[' ? "" : ",", "{\"name\":", Quoted(layer.name),
                    ",\"state\":", Quoted(StateName(layer.state)), ",\"does\":", Quoted(layer.does),
                    ",\"does_not\":", Quoted(layer.does_not), "}");
  }
  absl::StrAppend(&out, "],\"weakened\":[");
  for (const std::string& item : report.weakened) absl::StrAppend(&out, out.back() == '[' ? "" : ",", Quoted(item));
  return out + "]";
}

}  // namespace bulkhead::launcher
