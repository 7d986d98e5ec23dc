import Foundation

/// Checks a request against ``V1Schema`` as FCM's front end does, and normalises its spelling.
///
/// All violations are collected. Names may be in `snake_case` or `lowerCamelCase`, and `null` means absent; allowed but
/// careless spellings get a note. Elements of maps are numbered in the order of their names, because Foundation's
/// reader does not preserve the order of the text.
struct V1SchemaCheck {
    private var violations: [V1Violation] = []
    private var notes: [String] = []

    static func run(
        _ members: [String: JSONValue]
    ) throws(V1Failure) -> (members: [String: JSONValue], notes: [String]) {
        var check = V1SchemaCheck()
        let checked = check.object(members, fields: V1Schema.request, path: "")
        guard check.violations.isEmpty else { throw .malformed(check.violations) }
        return (checked, check.notes)
    }

    private mutating func object(
        _ members: [String: JSONValue],
        fields: [String: V1FieldType],
        path: String
    ) -> [String: JSONValue] {
        var result: [String: JSONValue] = [:]
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            let canonical = fields[name] == nil ? Self.snakeCase(name) : name
            guard let type = fields[canonical] else {
                self.unknown(name, in: path, why: "Cannot find field.")
                continue
            }
            let field = Self.join(path, canonical)
            if canonical != name { self.notes.append("\(field) is written \(name)") }
            if case .null = value {
                self.notes.append("\(field) is null")
                continue
            }
            guard result[canonical] == nil else {
                self.violate(path, "Invalid value at '\(path)', field '\(canonical)' is given twice.")
                continue
            }
            result[canonical] = self.value(value, type: type, field: field)
        }
        if path == "message" { self.checkTargets(result) }
        return result
    }

    private mutating func checkTargets(_ message: [String: JSONValue]) {
        for name in V1Schema.targets.filter({ message[$0] != nil }).dropFirst() {
            self.violate(
                "message",
                "Invalid value at 'message' (oneof), oneof field 'target' is already set. Cannot set '\(name)'"
            )
        }
    }

    private mutating func value(_ value: JSONValue, type: V1FieldType, field: String) -> JSONValue? {
        switch (type, value) {
        case (.string, .string), (.boolean, .bool):
            self.noteDefault(value, field: field)
            return value
        case (.int32, .number(let number)):
            if Int32(exactly: number.doubleValue) == nil { self.mistyped(field, type, value) }
            return value
        case (.float, .number):
            return value
        case (.duration, .string(let text)):
            if V1Duration(text) == nil {
                self.violate(
                    field,
                    "Invalid value at '\(field)' (\(type.name)), Illegal duration format; duration must end with 's'"
                )
            }
            return value
        case (.timestamp, .string(let text)):
            let isTimestamp =
                text.wholeMatch(
                    of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)/.asciiOnlyDigits()
                ) != nil
            if !isTimestamp {
                self.violate(field, "Invalid value at '\(field)' (\(type.name)), Illegal timestamp format")
            }
            return value
        case (.enumeration(_, let names, let foldsCase), .string(let text)):
            return self.name(text, of: names, foldsCase: foldsCase, type: type, field: field)
        case (.structure, .object(let members)):
            self.noteEmpty(members.isEmpty, field: field)
            return value
        case (.stringMap, .object(let members)):
            return .object(self.map(members, field: field))
        case (.message(_, let fields), .object(let members)):
            self.noteEmpty(members.isEmpty, field: field)
            return .object(self.object(members, fields: fields, path: field))
        case (.list(let element), .array(let entries)):
            self.noteEmpty(entries.isEmpty, field: field)
            let checked = entries.enumerated()
                .compactMap { index, entry in
                    self.value(entry, type: element, field: "\(field)[\(index)]")
                }
            return .array(checked)
        case (_, .array):
            let parent = field.split(separator: ".").dropLast().joined(separator: ".")
            let name = field.split(separator: ".").last.map(String.init) ?? field
            self.unknown(name, in: parent, why: "Proto field is not repeating, cannot start list.")
            return nil
        default:
            self.mistyped(field, type, value)
            return nil
        }
    }

    private mutating func map(_ members: [String: JSONValue], field: String) -> [String: JSONValue] {
        self.noteEmpty(members.isEmpty, field: field)
        for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
            if case .string = member.value { continue }
            self.mistyped("\(field)[\(index)].value", .string, member.value)
        }
        return members
    }

    private mutating func name(
        _ text: String,
        of names: [String],
        foldsCase: Bool,
        type: V1FieldType,
        field: String
    ) -> JSONValue? {
        if names.contains(text) { return .string(text) }
        let folded = text.uppercased()
        guard foldsCase, names.contains(folded) else {
            self.mistyped(field, type, .string(text))
            return nil
        }
        self.notes.append("\(field) is written \(text)")
        return .string(folded)
    }

    // MARK: Findings

    private mutating func unknown(_ name: String, in path: String, why: String) {
        let place = path.isEmpty ? "" : " at '\(path)'"
        self.violate(path, "Invalid JSON payload received. Unknown name \"\(name)\"\(place): \(why)")
    }

    private mutating func mistyped(_ field: String, _ type: V1FieldType, _ value: JSONValue) {
        self.violate(field, "Invalid value at '\(field)' (\(type.name)), \(value.compactJSON)")
    }

    private mutating func violate(_ field: String, _ description: String) {
        self.violations.append(V1Violation(field: field.isEmpty ? nil : field, description: description))
    }

    private mutating func noteDefault(_ value: JSONValue, field: String) {
        switch value {
        case .string(""): self.notes.append("\(field) is an empty string")
        case .bool(false): self.notes.append("\(field) is false, which is its default")
        case .null, .bool, .number, .string, .array, .object: break
        }
    }

    private mutating func noteEmpty(_ isEmpty: Bool, field: String) {
        if isEmpty { self.notes.append("\(field) is empty") }
    }

    private static func join(_ path: String, _ name: String) -> String {
        path.isEmpty ? name : path + "." + name
    }

    /// Converts `lowerCamelCase` to `snake_case`.
    ///
    /// A text with underscores stays unchanged: it was not found, and a mix of both spellings is neither.
    private static func snakeCase(_ name: String) -> String {
        guard !name.contains("_") else { return name }
        return name.reduce(into: "") { result, character in
            result += character.isUppercase ? "_" + character.lowercased() : String(character)
        }
    }
}
