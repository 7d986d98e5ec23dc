import FCMModel
import NIOCore
import StrictJSON

/// A request's JSON body.
enum JSONBody {
    /// Returns the members of a body that must be a JSON object.
    static func members(
        of body: ByteBuffer,
        contentType: String?,
        limits: JSONLimits = JSONLimits(),
        as mediaType: String = "application/json"
    ) throws(Refusal) -> JSONMembers {
        guard Self.isJSON(contentType) || Self.mediaType(contentType) == mediaType else {
            throw Refusal(.unsupportedMediaType, "Send the body as \(mediaType)")
        }
        let document: JSONDocument
        do {
            document = try JSONDocument(parsing: body, limits: limits)
        } catch {
            throw Refusal(error)
        }
        guard let members = document.root.members else {
            throw .noObject(at: document.root.offset)
        }
        return members
    }

    /// True for `application/json`, regardless of letter case and parameters.
    static func isJSON(_ contentType: String?) -> Bool {
        guard let contentType else { return false }
        if contentType == "application/json" { return true }
        return Self.mediaType(contentType) == "application/json"
    }

    private static func mediaType(_ contentType: String?) -> String? {
        contentType?.prefix { $0 != ";" && $0 != " " && $0 != "\t" }.lowercased()
    }
}

/// Collects the problems of a body while its fields are read.
///
/// Each reading function returns `nil` for an invalid value, after it has noted the problem and its place.
struct FieldProblems {
    /// More problems than this do not help the caller.
    private static let maxCount = 20

    private(set) var list: [Refusal.Field] = []

    /// True if no further problem will be reported. Reading more is useless then.
    var isFull: Bool { self.list.count >= Self.maxCount }

    mutating func report(
        _ code: OutcomeCode,
        at pointer: @autoclosure () -> JSONPointer,
        _ detail: @autoclosure () -> String
    ) {
        guard !self.isFull else { return }
        self.list.append(Refusal.Field(code, at: pointer().description, detail()))
    }

    /// Adds the problems of an object within the body.
    mutating func add(_ other: FieldProblems, in object: JSONPointer) {
        for problem in other.list.prefix(Self.maxCount - self.list.count) {
            self.list.append(Refusal.Field(problem.code, at: object.description + problem.path, problem.detail))
        }
    }

    /// Reports a member as unknown. The object allows only these names.
    mutating func unknown(
        _ key: String,
        in object: @autoclosure () -> JSONPointer = JSONPointer(),
        among names: @autoclosure () -> [String]
    ) {
        guard !self.isFull else { return }
        let hint = key.protocolWord.map { NearestName.hint(for: $0, among: names()) } ?? ""
        self.report(.unknownField, at: object().appending(key), "This field is not known here\(hint)")
    }

    /// Reads a text; an empty one is refused, since leaving the member out means the same.
    mutating func text(_ value: JSONValue, at pointer: @autoclosure () -> JSONPointer) -> String? {
        guard let text = self.string(value, at: pointer()) else { return nil }
        guard !text.isEmpty else {
            self.report(.invalidField, at: pointer(), "This must not be empty; leave it out instead")
            return nil
        }
        return text
    }

    /// Reads a display name or an id, which is stored.
    mutating func label(_ value: JSONValue, at pointer: @autoclosure () -> JSONPointer) -> String? {
        guard let text = self.text(value, at: pointer()) else { return nil }
        guard ValueRules.isLabel(text, maxBytes: ValueRules.maxLabelBytes) else {
            let detail = "This must have at most \(ValueRules.maxLabelBytes) bytes and no control characters"
            self.report(.invalidField, at: pointer(), detail)
            return nil
        }
        return text
    }

    /// True if a text is within a token's bounds.
    mutating func checkToken(_ text: String, at pointer: @autoclosure () -> JSONPointer) -> Bool {
        guard RegistrationToken.isWithinBounds(text) else {
            let detail = "This is too long for a registration token, or has control characters"
            self.report(.invalidToken, at: pointer(), detail)
            return false
        }
        return true
    }

    mutating func string(_ value: JSONValue, at pointer: @autoclosure () -> JSONPointer) -> String? {
        guard let text = value.string else {
            self.report(.invalidField, at: pointer(), "This must be a string")
            return nil
        }
        return text
    }

    mutating func bool(_ value: JSONValue, at pointer: @autoclosure () -> JSONPointer) -> Bool? {
        guard let bool = value.bool else {
            self.report(.invalidField, at: pointer(), "This must be true or false")
            return nil
        }
        return bool
    }

    mutating func integer(
        _ value: JSONValue,
        in range: ClosedRange<Int>,
        at pointer: @autoclosure () -> JSONPointer
    ) -> Int? {
        guard let number = value.number?.integer, range.contains(number) else {
            self.report(
                .invalidField,
                at: pointer(),
                "This must be a whole number from \(range.lowerBound) to \(range.upperBound)"
            )
            return nil
        }
        return number
    }

    mutating func word<Word: RawRepresentable & CaseIterable>(
        _ value: JSONValue,
        as type: Word.Type,
        at pointer: @autoclosure () -> JSONPointer
    ) -> Word? where Word.RawValue == String {
        guard let word = value.string?.protocolWord.flatMap(Word.init(rawValue:)) else {
            let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
            self.report(.invalidField, at: pointer(), "This must be one of: \(words)")
            return nil
        }
        return word
    }

    /// Reads a list of strings. Each string must have text unless `allowingEmpty` is true.
    mutating func strings(
        _ value: JSONValue,
        atMost maxCount: Int = Target.maxRecipients,
        allowingEmpty: Bool = false,
        at pointer: @autoclosure () -> JSONPointer
    ) -> [String]? {
        guard let elements = value.elements else {
            self.report(.invalidField, at: pointer(), "This must be an array of strings")
            return nil
        }
        guard elements.count <= maxCount else {
            self.report(.invalidField, at: pointer(), "This may have at most \(maxCount) entries")
            return nil
        }
        var strings: [String] = []
        strings.reserveCapacity(elements.count)
        for element in elements {
            let text =
                allowingEmpty
                ? self.string(element, at: pointer().appending(strings.count))
                : self.text(element, at: pointer().appending(strings.count))
            guard let text else { return nil }
            strings.append(text)
        }
        return strings
    }

    /// Reads the only member that a body may have; all others are unknown.
    mutating func only<Value>(
        _ name: String,
        of members: JSONMembers,
        missing detail: String,
        _ read: (inout FieldProblems, JSONValue) -> Value?
    ) -> Value? {
        var value: Value?
        var isGiven = false
        for member in members where !self.isFull {
            if member.keyEquals(name) {
                isGiven = true
                value = read(&self, member.value)
            } else {
                self.unknown(member.key, among: [name])
            }
        }
        if !isGiven { self.report(.invalidField, at: JSONPointer().appending(name), detail) }
        return value
    }

    mutating func orMissing(_ member: String) -> Refusal {
        if self.list.isEmpty { self.report(.invalidField, at: JSONPointer().appending(member), "This must be given") }
        return Refusal(self.list)
    }

    /// Reports the problems of a block for one platform.
    mutating func check(_ value: JSONValue, asPlatform name: String) {
        self.list += PlatformBlocks.problems(of: value, in: name, atMost: Self.maxCount - self.list.count)
    }

    mutating func members(_ value: JSONValue, at pointer: @autoclosure () -> JSONPointer) -> JSONMembers? {
        guard let members = value.members else {
            self.report(.invalidField, at: pointer(), "This must be an object")
            return nil
        }
        return members
    }
}
