// Turns a filter into a condition of SQL.
#ifndef MUSTER_BROKER_STORE_SQLITE_FILTER_SQL_H_
#define MUSTER_BROKER_STORE_SQLITE_FILTER_SQL_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "broker/store/sqlite/database.h"
#include "contract/filter.h"

namespace muster::store {

// A value bound to a parameter.
using SqlValue = std::variant<int64_t, std::string>;

// Binds the values in order. They must live as long as the statement reads them.
void BindAll(const std::vector<SqlValue>& values, Statement* statement);

struct SqlCondition {
  std::string text;              // about table job, named j, with functions.h
  std::vector<SqlValue> values;  // values of its parameters
};

// True for the jobs that the filter takes; false or NULL for the others.
SqlCondition ConditionOf(const contract::Filter& filter);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_FILTER_SQL_H_
