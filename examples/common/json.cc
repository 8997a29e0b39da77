#include "common/json.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace examples {
namespace {

// The length of the valid UTF-8 sequence that `text` begins with, or 0. Beyond
// the form of the bytes that excludes overlong forms, surrogates, and what lies
// above U+10FFFF.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

bool IsPlain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

void AppendEscaped(char c, std::string* out) {
  switch (c) {
    case '"':
    case '\\':
      out->push_back('\\');
      out->push_back(c);
      break;
    case '\n':
      out->append("\\n");
      break;
    case '\t':
      out->append("\\t");
      break;
    default:
      absl::StrAppendFormat(out, "\\u%04x", static_cast<uint8_t>(c));
  }
}

}  // namespace

void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && IsPlain(text[plain])) ++plain;
    out->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    if (const size_t length = Utf8Length(text); length > 1) {
      out->append(text.substr(0, length));
      text.remove_prefix(length);
    } else {
      AppendEscaped(text[0], out);
      text.remove_prefix(1);
    }
  }
  out->push_back('"');
}

void JsonWriter::Begin(char bracket) {
  Separate();
  text_.push_back(bracket);
  comma_ = false;
}

void JsonWriter::End(char bracket) {
  if (line_) text_.push_back('\n');
  line_ = false;
  text_.push_back(bracket);
  comma_ = true;
}

void JsonWriter::Separate() {
  if (comma_) text_.push_back(',');
  if (line_) text_.push_back('\n');
  line_ = false;
}

void JsonWriter::Append(std::string_view value) {
  Separate();
  text_.append(value);
  comma_ = true;
}

JsonWriter& JsonWriter::Key(std::string_view name) {
  Separate();
  AppendJsonString(name, &text_);
  text_.push_back(':');
  comma_ = false;
  return *this;
}

void JsonWriter::String(std::string_view text) {
  Separate();
  AppendJsonString(text, &text_);
  comma_ = true;
}

void JsonWriter::Number(uint64_t number) { Append(std::to_string(number)); }

void JsonWriter::Decimal(double number, int decimals) {
  // JSON has no infinity and no NaN.
  if (!std::isfinite(number)) return Null();
  Append(absl::StrFormat("%.*f", decimals, number));
}

void JsonWriter::Bool(bool value) { Append(value ? "true" : "false"); }

void JsonWriter::Null() { Append("null"); }

void JsonWriter::Addr(uint64_t addr) {
  if (addr == 0) return Null();
  Append(absl::StrFormat("\"0x%016x\"", addr));
}

}  // namespace examples
