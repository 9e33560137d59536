// Manages the projects of jobs: who is a member of each, and what its jobs may use.
#ifndef MUSTER_BROKER_APP_PROJECTS_H_
#define MUSTER_BROKER_APP_PROJECTS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/projects_service.pb.h"

namespace muster::broker {

template <typename Response>
using ProjectDone = std::function<void(absl::StatusOr<Response>)>;

// Any thread may use it.
absl::StatusOr<v1::GetProjectResponse> GetProject(const Principal& principal,
                                                  const Services& services,
                                                  const v1::GetProjectRequest& request);
absl::StatusOr<v1::ListProjectsResponse> ListProjects(const Principal& principal,
                                                      const Services& services,
                                                      const v1::ListProjectsRequest& request);

// These functions wait for the disk; call them on one thread. `done` is called once, on any thread,
// when the change is on disk and placement goes by it.
void CreateProject(const Principal& principal, const Services& services,
                   const v1::CreateProjectRequest& request,
                   ProjectDone<v1::CreateProjectResponse> done);
void UpdateProject(const Principal& principal, const Services& services,
                   const v1::UpdateProjectRequest& request,
                   ProjectDone<v1::UpdateProjectResponse> done);
void ArchiveProject(const Principal& principal, const Services& services,
                    const v1::ArchiveProjectRequest& request,
                    ProjectDone<v1::ArchiveProjectResponse> done);
void SetMember(const Principal& principal, const Services& services,
               const v1::SetMemberRequest& request, ProjectDone<v1::SetMemberResponse> done);
void RemoveMember(const Principal& principal, const Services& services,
                  const v1::RemoveMemberRequest& request,
                  ProjectDone<v1::RemoveMemberResponse> done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_PROJECTS_H_
