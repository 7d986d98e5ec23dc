import Foundation
import StrictJSON

/// Compares a value of ours with what Foundation made of the same text.
struct ValueComparison {
    /// The differences met that are known.
    private(set) var differences: Set<KnownDifference> = []

    /// Compares two values.
    ///
    /// - Parameters:
    ///   - ours: Our view.
    ///   - theirs: Foundation's value.
    /// - Returns: Whether they are the same, but for known differences.
    mutating func areEqual(_ ours: JSONValue, _ theirs: Any) -> Bool {
        switch ours.kind {
        case .null:
            return theirs is NSNull && ours.isNull
        case .bool:
            return Self.serialized(theirs) == (ours.bool == true ? "true" : "false")
        case .string:
            guard let text = ours.string, let other = theirs as? String else { return false }
            return self.areEqual(text, other)
        case .number:
            guard let number = ours.number, let other = theirs as? NSNumber, !(theirs is NSNull) else { return false }
            return Self.areEqual(number, other)
        case .array:
            guard let elements = ours.elements, let others = theirs as? [Any], elements.count == others.count else {
                return false
            }
            for (element, other) in zip(elements, others) {
                guard self.areEqual(element, other) else { return false }
            }
            return true
        case .object:
            guard let members = ours.members, let others = theirs as? [String: Any] else { return false }
            return self.areEqual(members, others)
        }
    }

    private mutating func areEqual(_ members: JSONMembers, _ others: [String: Any]) -> Bool {
        // `String` compares normalised forms, as Foundation's dictionary does.
        let names = Set(members.map { Self.withoutMarks($0.key) })
        guard names.count == members.count else {
            self.differences.insert(.equivalentNames)
            return names == Set(others.keys.map { Self.withoutMarks($0) })
        }
        guard others.count == members.count else { return false }
        for member in members {
            let name = member.key
            let index =
                others.index(forKey: name)
                ?? others.firstIndex { Self.withoutMarks($0.key) == Self.withoutMarks(name) }
            guard let index, self.areEqual(name, others[index].key), self.areEqual(member.value, others[index].value)
            else { return false }
        }
        return true
    }

    private mutating func areEqual(_ text: String, _ other: String) -> Bool {
        if text.utf8.elementsEqual(other.utf8) { return true }
        guard Self.withoutMarks(text).utf8.elementsEqual(Self.withoutMarks(other).utf8) else { return false }
        self.differences.insert(.byteOrderMarkInString)
        return true
    }

    private static func withoutMarks(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.filter { $0 != "\u{FEFF}" }))
    }

    private static func areEqual(_ number: JSONNumber, _ other: NSNumber) -> Bool {
        // `true` and `false` are numbers to Foundation, too.
        guard let text = Self.serialized(other), text != "true", text != "false" else { return false }
        if let decimal = other as? NSDecimalNumber {
            // Foundation keeps 38 digits of such a number.
            return decimal.decimalValue == Decimal(string: number.text)
                && number.integer.map { decimal.decimalValue == Decimal($0) } ?? true
        }
        guard other.doubleValue == Double(number.text) else { return false }
        return number.integer.map { other.int64Value == Int64($0) } ?? true
    }

    private static func serialized(_ value: Any) -> String? {
        guard let data = try? JSONSerialization.data(withJSONObject: value, options: [.fragmentsAllowed]) else {
            return nil
        }
        return String(decoding: data, as: UTF8.self)
    }
}
