#include "agents/machines/record.h"

#include <charconv>

namespace muster::machines {
namespace {

constexpr std::string_view kEnd = "end";

}  // namespace

void Record::Add(std::string_view name, std::string_view value) {
  fields_.emplace_back(name, value);
}

void Record::Add(std::string_view name, int64_t value) { Add(name, std::to_string(value)); }

const std::string* Record::Find(std::string_view name) const {
  for (const auto& [field, value] : fields_) {
    if (field == name) return &value;
  }
  return nullptr;
}

std::string Record::Text(std::string_view name) const {
  const std::string* value = Find(name);
  return value == nullptr ? std::string() : *value;
}

int64_t Record::Number(std::string_view name) const {
  const std::string* value = Find(name);
  int64_t number = 0;
  if (value != nullptr) std::from_chars(value->data(), value->data() + value->size(), number);
  return number;
}

bool Record::Has(std::string_view name) const { return Find(name) != nullptr; }

std::vector<std::string> Record::All(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [field, value] : fields_) {
    if (field == name) values.push_back(value);
  }
  return values;
}

std::string Record::Encode() const {
  std::string bytes;
  for (const auto& [name, value] : fields_) {
    bytes.append(name).append(1, '=').append(value).append(1, '\0');
  }
  return bytes.append(kEnd).append(1, '\0');
}

std::optional<Record> Record::Decode(std::string_view bytes) {
  Record record;
  while (true) {
    const size_t nul = bytes.find('\0');
    if (nul == std::string_view::npos) return std::nullopt;
    const std::string_view field = bytes.substr(0, nul);
    if (field == kEnd) return record;
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    record.Add(field.substr(0, equals), field.substr(equals + 1));
    bytes.remove_prefix(nul + 1);
  }
}

}  // namespace muster::machines
