#include "runtime/local/store/sqlite.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace fettle::local {
namespace {

constexpr int kBusyTimeoutMs = 5000;  // a reader may lock the file for a moment

// "immutable" lets SQLite read a WAL database in a place where it may not write.
std::string immutable_uri(const std::string& path) {
  // The authority is empty, because a path may begin with two slashes.
  std::string uri = path.starts_with('/') ? "file://" : "file:";
  for (const char c : path) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '?' || c == '#' || c == '%') {
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

Sqlite::Row read_row(sqlite3_stmt* statement) {
  Sqlite::Row row;
  for (int i = 0; i < sqlite3_column_count(statement); ++i) {
    if (sqlite3_column_type(statement, i) == SQLITE_INTEGER) {
      row.emplace_back(static_cast<std::int64_t>(sqlite3_column_int64(statement, i)));
    } else {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
      const int bytes = sqlite3_column_bytes(statement, i);
      row.emplace_back(text == nullptr ? std::string()  // NULL
                                       : std::string(text, static_cast<std::size_t>(bytes)));
    }
  }
  return row;
}

int bind(sqlite3_stmt* statement, const std::vector<Sqlite::Value>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int at = static_cast<int>(i) + 1;
    int code = SQLITE_OK;
    if (const auto* number = std::get_if<std::int64_t>(&values[i])) {
      code = sqlite3_bind_int64(statement, at, *number);
    } else {
      // Not copied (SQLITE_STATIC): run() clears the bindings before `values` ends.
      const auto& text = std::get<std::string>(values[i]);
      code =
          sqlite3_bind_text64(statement, at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

}  // namespace

void Sqlite::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Result<std::unique_ptr<Sqlite>> Sqlite::open(const std::string& path, bool writable) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) {
    return io_error(path + " is a directory and no database; move it away");
  }
  std::unique_ptr<Sqlite> opened(new Sqlite(path));
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI |
                    (writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
  const auto try_open = [&](const std::string& name) {
    sqlite3_close_v2(opened->database_);
    opened->database_ = nullptr;
    // Makes a handle even if it fails, from which error() reads the message.
    int code = sqlite3_open_v2(name.c_str(), &opened->database_, flags, nullptr);
    if (code == SQLITE_OK) sqlite3_busy_timeout(opened->database_, kBusyTimeoutMs);
    // Opening alone does not read the file.
    if (code == SQLITE_OK) {
      code = sqlite3_exec(opened->database_, "PRAGMA user_version", nullptr, nullptr, nullptr);
    }
    return code;
  };
  int code = try_open(path);
  if (code != SQLITE_OK && !writable && ::access(path.c_str(), F_OK) != 0) {
    return not_found("there is no " + path);
  }
  // A reader of a WAL database has to write its shared-memory file.
  if ((code == SQLITE_CANTOPEN || code == SQLITE_READONLY) && !writable) {
    code = try_open(immutable_uri(path));
    opened->is_frozen_ = true;
  }
  if (code != SQLITE_OK) return opened->error(code);
  return opened;
}

Sqlite::~Sqlite() {
  statements_.clear();
  // While a page follows the study, this is not the last connection, whose close would move the
  // write-ahead log into the file: the file would be old where it is copied alone.
  if (database_ != nullptr && sqlite3_db_readonly(database_, "main") == 0) {
    (void)sqlite3_wal_checkpoint_v2(database_, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                                    nullptr);
  }
  sqlite3_close_v2(database_);
}

Result<sqlite3_stmt*> Sqlite::prepare(const char* sql) {
  for (const Prepared& prepared : statements_) {
    if (prepared.sql == sql) return prepared.statement.get();  // the same address: see run()
  }
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v3(database_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return error(code);
  statements_.push_back({sql, std::unique_ptr<sqlite3_stmt, Finalize>(statement)});
  return statement;
}

Status Sqlite::run(const char* sql, const std::vector<Value>& values,
                   const std::function<void(const Row&)>& visit) {
  FETTLE_ASSIGN(sqlite3_stmt* const statement, prepare(sql));
  int code = bind(statement, values);
  while (code == SQLITE_OK || code == SQLITE_ROW) {
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW && visit) visit(read_row(statement));
  }
  Status done = code == SQLITE_DONE ? success() : Status(error(code));
  // Keeps the cause of the last failure: a success does not change it.
  if (!done.ok()) is_full_ = cause(code) == SQLITE_FULL;
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return done;
}

// Not with run(): this pragma does its work when it is prepared, and statements are kept.
Status Sqlite::set_durable(bool durable) {
  const char* const sql = durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL";
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? success() : Status(error(code));
}

Result<std::int64_t> Sqlite::number(const char* sql) {
  std::int64_t found = 0;
  FETTLE_TRY(run(sql, {}, [&](const Row& row) {
    const auto* value = row.empty() ? nullptr : std::get_if<std::int64_t>(&row[0]);
    if (value != nullptr) found = *value;
  }));
  return found;
}

Result<std::string> Sqlite::text(const char* sql) {
  std::string found;
  FETTLE_TRY(run(sql, {}, [&](const Row& row) {
    const auto* value = row.empty() ? nullptr : std::get_if<std::string>(&row[0]);
    if (value != nullptr) found = *value;
  }));
  return found;
}

// The primary code. Files beside the database (its log, its index) that find no room fail with a
// system error.
int Sqlite::cause(int code) const {
  const int primary = code & 0xff;
  const bool by_system = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN;
  if (!by_system || database_ == nullptr) return primary;
  return is_no_room(sqlite3_system_errno(database_)) ? SQLITE_FULL : primary;
}

Error Sqlite::error(int code) const {
  const std::string detail =
      database_ != nullptr ? sqlite3_errmsg(database_) : sqlite3_errstr(code);
  switch (cause(code)) {
    case SQLITE_FULL:
      return {ErrorCode::kUnavailable, "the disk is full: cannot write " + path_ +
                                           "; nothing that was recorded is lost, make room"};
    case SQLITE_READONLY:
      return io_error(path_ + " cannot be written (" + detail +
                      "); nothing was changed, make it and its directory writable or run in "
                      "another directory");
    case SQLITE_CANTOPEN:
      return io_error("cannot open " + path_ + " (" + detail +
                      "); can its directory be read and written?");
    case SQLITE_NOTADB:
      return io_error(path_ + " is no SQLite database; move it away, or name the right file");
    case SQLITE_CORRUPT:
      return io_error(path_ + " is damaged (" + detail +
                      "); restore it from a copy, or move it away to start the Study anew");
    case SQLITE_IOERR:
      return io_error("cannot read or write " + path_ + " (" + detail +
                      "); nothing that was recorded is lost, see whether the disk is full or "
                      "failing");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kUnavailable, path_ + " is in use by another process"};
    default:
      return io_error(path_ + ": " + detail);
  }
}

}  // namespace fettle::local
