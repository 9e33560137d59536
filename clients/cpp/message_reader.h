// Reads a protobuf message from YAML, field by field under the API's own names or those of
// protobuf's JSON form (cpuMillis), by reflection: a field that is added to the API can be written
// in a file at once. Private to the client library.
#ifndef MUSTER_CLIENTS_CPP_MESSAGE_READER_H_
#define MUSTER_CLIENTS_CPP_MESSAGE_READER_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cpp/yaml_reader.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace muster::client {

// The names that a file may use for the values of an enum: "wait", and ON_CLUSTER_LOSS_WAIT.
std::vector<std::string> WrittenEnumNames(const google::protobuf::EnumDescriptor& type);

// Borrows the YamlReader, which collects the problems.
class MessageReader {
 public:
  // `friendly` replaces fields, by their full names, by ones that are written otherwise.
  MessageReader(YamlReader* in, std::map<std::string_view, YamlReader::Field> friendly)
      : in_(*in), friendly_(std::move(friendly)) {}

  // `extra` are fields of this mapping that the message does not have; they are read after its own.
  void Read(const YamlValue& value, google::protobuf::Message* message,
            const std::vector<YamlReader::Field>& extra = {},
            const std::map<std::string_view, std::string_view>& hints = {}) const;

 private:
  using Field = google::protobuf::FieldDescriptor;

  void ReadField(const YamlValue& value, google::protobuf::Message* message,
                 const Field* field) const;
  void ReadRepeated(const YamlValue& value, google::protobuf::Message* message,
                    const Field* field) const;
  void ReadMap(const YamlValue& value, google::protobuf::Message* message,
               const Field* field) const;
  void ReadEnum(const YamlValue& value, google::protobuf::Message* message,
                const Field* field) const;

  YamlReader& in_;
  const std::map<std::string_view, YamlReader::Field> friendly_;
};

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_MESSAGE_READER_H_
