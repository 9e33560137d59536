#include "broker/core/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "contract/slurm_only.h"
#include "contract/storage_uri.h"
#include "contract/text.h"

namespace muster::core {

namespace {

bool IsFileUri(std::string_view field, std::string_view text) {
  const auto uri = contract::ParseStorageUri(field, text);
  return uri.ok() && uri->kind == contract::StorageUri::Kind::kFile;
}

// The first field that names a file of the user's own machine; empty: none does.
std::string FileOfAMachine(const v1::JobSpec& spec) {
  for (int i = 0; i < spec.inputs_size(); ++i) {
    std::string field = fmt::format("inputs[{}].uri", i);
    if (IsFileUri(field, spec.inputs(i).uri())) return field;
  }
  return IsFileUri("results_directory", spec.results_directory()) ? "results_directory" : "";
}

}  // namespace

v1::JobSpec ShapeOf(const v1::JobSpec& spec) {
  v1::JobSpec shape;
  shape.set_nodes(spec.nodes());
  if (spec.has_resources()) *shape.mutable_resources() = spec.resources();
  if (spec.has_time_limit()) *shape.mutable_time_limit() = spec.time_limit();
  if (spec.has_placement()) *shape.mutable_placement() = spec.placement();
  if (spec.has_retry()) *shape.mutable_retry() = spec.retry();
  // Which image it is places nothing, only what kind of cluster can have it.
  if (!spec.image().empty()) shape.set_image(spec.image().front() == '/' ? "/" : "registry");
  if (!contract::WhySlurmOnly(spec).empty()) {
    shape.mutable_slurm()->set_partition(spec.slurm().partition());
  }
  // Whether they share nodes.
  for (const v1::Role& role : spec.roles()) {
    v1::Role* part = shape.add_roles();
    part->set_first_node(role.first_node());
    part->set_nodes(role.nodes());
  }
  // Which data it is places nothing, only whether it is of a machine: then that field's name stands
  // for all of it.
  if (const std::string field = FileOfAMachine(spec); !field.empty())
    shape.add_inputs()->set_uri(field);
  // Which files it brings along places nothing either.
  if (spec.uploads_size() > 0) shape.add_uploads();
  if (spec.has_kubernetes()) {
    shape.mutable_kubernetes()->set_namespace_(spec.kubernetes().namespace_());
  }
  return shape;
}

Shape* Shapes::Find(std::string_view bytes) const {
  auto it = by_bytes_.find(ToAbsl(bytes));
  return it == by_bytes_.end() ? nullptr : it->second;
}

Shape* Shapes::Find(uint32_t id) const {
  auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second.get();
}

Shape* Shapes::Add(std::string bytes, v1::JobSpec spec) {
  return Restore(next_id_, std::move(bytes), std::move(spec));
}

Shape* Shapes::Restore(uint32_t id, std::string bytes, v1::JobSpec spec) {
  next_id_ = std::max(next_id_, id + 1);
  auto shape = std::make_unique<Shape>();
  shape->id = id;
  shape->spec = std::move(spec);
  shape->bytes = bytes;
  Shape* raw = shape.get();
  by_id_.emplace(id, std::move(shape));
  by_bytes_.emplace(std::move(bytes), raw);
  ++unused_;
  return raw;
}

}  // namespace muster::core
