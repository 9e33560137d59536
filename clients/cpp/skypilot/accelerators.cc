#include "clients/cpp/skypilot/accelerators.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "clients/cpp/skypilot/scalar.h"
#include "clients/cpp/skypilot/values.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::client::skypilot {
namespace {

// More choices than this are no choice that anybody has thought about.
constexpr size_t kMaxChoices = 100;

absl::Status Bad(std::string_view text, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{} {}", contract::Quoted(text), what));
}

// Recognises devices by their memory: "80GB", "80GB+", "nvidia:80GB+".
bool IsByMemory(std::string_view text) {
  static const auto* const pattern = new RE2("(?i)(?:[^:]*:)?[0-9.]+[GMT]B\\+?(?::[^:]*)?");
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *pattern);
}

absl::StatusOr<v1::GpuRequest> Make(std::string_view text, std::string_view type, double count) {
  if (!std::isfinite(count) || count <= 0) {
    return Bad(text, "has a count that is not above 0; leave it out for one GPU");
  }
  if (count > 1 && count != std::floor(count)) {
    return Bad(text,
               "asks for more than one GPU and a part; ask for whole ones, or for less "
               "than one, as in H100:0.5");
  }
  const double millis = std::round(count * 1000);
  if (std::abs(millis - count * 1000) > 1e-6 || millis < 1) {
    return Bad(text,
               "asks for a part of a GPU that is not in thousandths; use at most three "
               "decimals, as in H100:0.333");
  }
  if (millis > 1'000'000) return Bad(text, "asks for too many GPUs; 1000 on each node is the most");
  // The contract says which names a type may have.
  auto gpus = contract::ParseGpus(
      fmt::format("{}:{}", type, contract::FormatCpus(static_cast<uint64_t>(millis))));
  if (gpus.ok()) return gpus;
  return Bad(text,
             "does not name a type of GPU; write TYPE or TYPE:COUNT, as in H100:4, with a "
             "type that muster clusters NAME lists");
}

// Reads a name with a count of its own, or none.
absl::StatusOr<v1::GpuRequest> FromEntry(const YAML::Node& name, const YAML::Node& count) {
  if (!name.IsScalar()) return absl::InvalidArgumentError("expected the name of a type of GPU");
  if (count.IsNull()) return ParseAccelerator(name.Scalar());
  const Scalar number = ReadScalar(count);
  if (number.kind != ScalarKind::kInteger && number.kind != ScalarKind::kFloat) {
    return Bad(name.Scalar(), "has a count that is not a number; write it without quotes");
  }
  if (IsByMemory(name.Scalar())) return ParseAccelerator(name.Scalar());
  return Make(fmt::format("{}: {}", name.Scalar(), number.text), name.Scalar(), number.number);
}

void Add(YamlReader& in, const YamlValue& value, const absl::StatusOr<v1::GpuRequest>& gpus,
         std::vector<v1::GpuRequest>* choices) {
  if (!gpus.ok()) return in.Problem(value, ToStd(gpus.status().message()));
  const bool is_known = std::any_of(choices->begin(), choices->end(), [&](const auto& choice) {
    return choice.type() == gpus->type() && choice.count_millis() == gpus->count_millis();
  });
  if (!is_known && choices->size() < kMaxChoices) choices->push_back(*gpus);
}

}  // namespace

absl::StatusOr<v1::GpuRequest> ParseAccelerator(std::string_view text) {
  if (IsByMemory(text)) {
    return Bad(text,
               "names GPUs by their memory, and Muster has no catalogue of devices; name the "
               "type, as in H100:4 (muster clusters NAME lists them)");
  }
  const size_t colon = text.find(':');
  if (colon == text.npos) return Make(text, text, 1);
  const std::string_view number = text.substr(colon + 1);
  double count = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  if (error != std::errc() || end != number.data() + number.size()) {
    return Bad(text, "is not TYPE or TYPE:COUNT, as in H100:4");
  }
  return Make(text, text.substr(0, colon), count);
}

Accelerators ReadAccelerators(YamlReader& in, const YamlValue& value) {
  Accelerators found;
  if (value.node.IsMap()) {
    for (const auto& entry : value.node) {
      Add(in, value, FromEntry(entry.first, entry.second), &found.choices);
    }
    return found;
  }
  std::string text;
  if (!value.node.IsSequence()) {
    if (ReadText(in, value, &text)) Add(in, value, ParseAccelerator(text), &found.choices);
    return found;
  }
  if (value.node.size() == 0) in.Problem(value, "is an empty list; name a type, or leave it out");
  in.List(value, [&](const YamlValue& item) {
    if (item.node.IsMap()) {
      return in.Problem(item, "expected a text in a list of choices, as in [H100:4, A100:8]");
    }
    if (ReadText(in, item, &text)) Add(in, item, ParseAccelerator(text), &found.choices);
  });
  found.is_ordered = found.choices.size() > 1;
  return found;
}

}  // namespace muster::client::skypilot
