# Keeps a cold build short: a file of ours is 100 lines and reads 150,000 of headers, nearly always the same ones. Included at
# the end of the root's CMakeLists.txt, when all targets are known. Both ways of building stay whole: without the two options
# each file is compiled alone, which shows a missing include and is what clang-tidy reads.
option(MUSTER_PCH "Compile common headers once" ON)
option(MUSTER_UNITY "Compile several files of a target together" ON)

# A change of one file compiles its batch, so that a batch must not be too large.
set(files_per_batch 8)

# Their names in anonymous namespaces are those of other files of their targets.
set(files_alone
    tests/unit/core/fingerprint_test.cc
    tests/unit/rpc/durable_answers_test.cc
    tests/unit/store/take_over_test.cc
    tests/unit/agents/fake_broker.cc
    tests/unit/clients/fake_broker.cc
    tests/unit/kubernetes/kueue_test.cc
    tests/unit/slurm/arrays_test.cc
    tests/integration/kubernetes/namespaces_test.cc
    tests/integration/slurm/answers_test.cc
    tests/integration/slurm/array_test.cc
    tests/integration/slurm/backend_test.cc
    tests/integration/slurm/container_test.cc
    tests/integration/slurm/interruptions_test.cc
    tests/integration/slurm/modes_test.cc
    tests/integration/slurm/no_accounting_test.cc
    tests/integration/slurm/options_test.cc
    tests/integration/slurm/rest_versions_test.cc
    tests/sim/broker.cc
    tests/unit/agents/run_files/host_run_files_test.cc
    tests/unit/agent_app/slurm_profile_settings_test.cc
    tests/unit/clients/command_slurm_test.cc
    tests/unit/clients/skypilot_task_test.cc
    tests/unit/contract/image_test.cc
    tests/unit/contract/kubernetes_options_test.cc
    tests/unit/contract/slurm_container_test.cc
    tests/unit/contract/slurm_only_test.cc
    tests/unit/contract/slurm_variables_test.cc
    tests/unit/contract/validate_test.cc
    tests/unit/hosts/host_keys_test.cc
    tests/unit/hosts/run_test.cc
    tests/unit/kubernetes/backend_gone_test.cc
    tests/unit/kubernetes/backend_observe_test.cc
    tests/unit/kubernetes/capacity_test.cc
    tests/unit/kubernetes/checks_test.cc
    tests/unit/kubernetes/clean_up_test.cc
    tests/unit/kubernetes/inventory_test.cc
    tests/unit/kubernetes/obstacle_test.cc
    tests/unit/kubernetes/run_store_test.cc
    tests/unit/kubernetes/start_script_test.cc
    tests/unit/kubernetes/verdict_test.cc
    tests/unit/logs/archive_test.cc
    tests/unit/logs/crash_test.cc
    tests/unit/logs/rank_reader_test.cc
    tests/unit/machines/gang_test.cc
    tests/unit/rpc/agent_link_test.cc
    tests/unit/rpc/changes_test.cc
    tests/unit/rpc/files_test.cc
    tests/unit/rpc/questions_test.cc
    tests/unit/rpc/submit_test.cc
    tests/unit/slurm/batch_streams_test.cc
    tests/unit/slurm/checks_test.cc
    tests/unit/slurm/not_sent_test.cc
    tests/unit/slurm/plan_test.cc
    tests/unit/slurm/rest_answers_test.cc
    tests/unit/slurm/submit_test.cc
    tests/unit/slurm/verdict_test.cc)

# The names are in angle brackets, so that no path of this checkout gets in: ccache then finds what another checkout has
# compiled.
set(common_headers
    <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <deque> <filesystem> <fstream> <functional>
    <map> <memory> <mutex> <optional> <set> <sstream> <string> <string_view> <thread> <utility> <variant> <vector>
    <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h> <absl/status/statusor.h> <absl/time/clock.h>
    <absl/time/time.h> <absl/types/span.h> <fmt/format.h> <fmt/ranges.h>
    <google/rpc/error_details.pb.h> <muster/agent/v1/agent_link.pb.h> <muster/v1/jobs_service.pb.h>)

# Generated code, what does without those headers, and a main that is nothing but a call.
set(without_common_headers muster_messages muster_services muster_grpc_protos muster_digest muster_run_records muster-run-as muster-supervisor muster)

# muster_targets(RESULT DIRECTORY...): what is compiled below the directories.
function(muster_targets result)
  set(found)
  foreach(directory IN LISTS ARGN)
    get_filename_component(directory ${directory} ABSOLUTE)
    get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      get_target_property(type ${target} TYPE)
      if(type MATCHES "STATIC|OBJECT|EXECUTABLE")
        list(APPEND found ${target})
      endif()
    endforeach()
    get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
    muster_targets(more ${below})
    list(APPEND found ${more})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# The compiler takes precompiled headers only if the options that may change their meaning are the same.
function(muster_use_precompiled target)
  target_link_libraries(${target} PRIVATE fmt::fmt)
  target_compile_options(${target} PRIVATE -pthread -fpch-preprocess)
endfunction()

# muster_precompile(NAME HEADER...): makes a target whose headers others reuse.
function(muster_precompile name)
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "// The headers that are compiled with this file are what matters.\n")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE muster_flags muster_messages absl::flat_hash_map absl::statusor absl::time)
  muster_use_precompiled(${name})
  target_precompile_headers(${name} PRIVATE ${ARGN})
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    set(header ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.gch)
    set_target_properties(${name} PROPERTIES
        CXX_COMPILER_LAUNCHER "${CMAKE_SOURCE_DIR}/proto/fresh_pch;${header};${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
endfunction()

# muster_reuse(NAME TARGET...): the targets are compiled with the headers of NAME.
function(muster_reuse name)
  foreach(target IN LISTS ARGN)
    if(NOT target IN_LIST without_common_headers)
      muster_use_precompiled(${target})
      target_precompile_headers(${target} REUSE_FROM ${name})
    endif()
  endforeach()
endfunction()

# muster_join(TARGET): files of the target in batches. CMake's own UNITY_BUILD writes absolute paths into them, with which
# ccache finds nothing of another checkout. 
function(muster_join target)
  get_target_property(directory ${target} SOURCE_DIR)
  get_target_property(binary_directory ${target} BINARY_DIR)
  get_target_property(sources ${target} SOURCES)
  set(kept)
  set(joined)
  foreach(source IN LISTS sources)
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${directory})
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE name)
    get_source_file_property(generated ${path} TARGET_DIRECTORY ${target} GENERATED)
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${path} built)
    if(name IN_LIST files_alone OR (built AND NOT generated))
      list(APPEND kept ${path})
    else()
      list(APPEND joined ${path})
    endif()
  endforeach()
  set(number 0)
  while(joined)
    list(SUBLIST joined 0 ${files_per_batch} batch)
    list(REMOVE_ITEM joined ${batch})
    set(text)
    set(generated_files)
    foreach(path IN LISTS batch)
      cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${path} built)
      if(built)
        list(APPEND generated_files ${path})
        cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${binary_directory})
      else()
        cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
      endif()
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    set(file ${binary_directory}/${target}_${number}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES OBJECT_DEPENDS "${generated_files}")
    list(APPEND kept ${file})
    math(EXPR number "${number} + 1")
  endwhile()
  set_target_properties(${target} PROPERTIES SOURCES "${kept}")
  # GCC takes a batch for the main file, and what is private to the files in it for part of a header.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
endfunction()

muster_targets(programs proto broker clients agents)
# Agents and clients wait for others: schedulers, programs, the broker. -O2 would take half as long again to compile them. The
# scheduler of machines computes.
muster_targets(waiting clients agents)
list(REMOVE_ITEM waiting muster_scheduling)
foreach(target IN LISTS waiting)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endforeach()
if(MUSTER_BUILD_TESTS)
  muster_targets(measured tests/sim tests/bench)
  list(APPEND programs ${measured})
  # Tests are compiled more often than they run, and what they test is optimised all the same.
  muster_targets(tests tests/unit tests/integration)
  foreach(target IN LISTS tests)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  endforeach()
endif()
if(MUSTER_UNITY)
  # The sources of two messages files of one package define the same names.
  list(REMOVE_ITEM programs muster_messages muster_grpc_protos)
  foreach(target IN LISTS programs tests)
    muster_join(${target})
  endforeach()
endif()
if(MUSTER_PCH)
  muster_precompile(muster_headers ${common_headers})
  muster_reuse(muster_headers ${programs})
  if(MUSTER_BUILD_TESTS)
    muster_precompile(muster_test_headers ${common_headers} <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(muster_test_headers PRIVATE GTest::gmock)
    target_compile_options(muster_test_headers PRIVATE $<$<CONFIG:Release>:-O0>)
    muster_reuse(muster_test_headers ${tests})
  endif()
endif()
