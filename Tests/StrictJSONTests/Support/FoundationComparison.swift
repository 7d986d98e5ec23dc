import Foundation
import NIOCore
import StrictJSON

/// Reads one text with both readers and explains how they differ.
struct FoundationComparison {
    enum Verdict {
        /// Both accept with the same values, or both refuse.
        case agree(isAccepted: Bool)
        /// They differ in a known way, which an independent look at the text confirms.
        case explained(KnownDifference)
        /// They differ, and nobody knows why.
        case unexplained(String)
    }

    let limits: JSONLimits

    func verdict(on document: [UInt8]) -> Verdict {
        let theirs = try? JSONSerialization.jsonObject(with: Data(document), options: [.fragmentsAllowed])
        do throws(JSONParseError) {
            let ours = try JSONDocument(parsing: ByteBuffer(bytes: document), limits: self.limits).root
            guard let theirs else {
                return Self.hasNumberOverflow(ours)
                    ? .explained(.numberOverflow) : .unexplained("only Foundation refuses it")
            }
            return self.verdict(on: document, accepted: ours, theirs: theirs)
        } catch {
            guard let theirs else { return .agree(isAccepted: false) }
            return self.explanation(of: error, document: document, theirs: theirs, repairs: 0)
        }
    }

    private func verdict(on document: [UInt8], accepted ours: JSONValue, theirs: Any) -> Verdict {
        let scan = StructureScan(document)
        guard !scan.hasDuplicateNames else { return .unexplained("we missed a duplicate name") }
        guard scan.depth <= self.limits.maxDepth else { return .unexplained("we missed the depth") }
        guard scan.memberCount <= self.limits.maxMembers else { return .unexplained("we missed the members") }
        guard scan.trailingCommas.isEmpty else { return .unexplained("we missed a trailing comma") }
        var comparison = ValueComparison()
        guard comparison.areEqual(ours, theirs) else { return .unexplained("the values differ") }
        return comparison.differences.first.map { .explained($0) } ?? .agree(isAccepted: true)
    }

    /// Explains a text that only Foundation accepts.
    private func explanation(
        of error: JSONParseError,
        document: [UInt8],
        theirs: Any,
        repairs: Int
    ) -> Verdict {
        let scan = StructureScan(document)
        switch error.code {
        case .duplicateKey:
            return scan.hasDuplicateNames ? .explained(.duplicateNames) : .unexplained("no name occurs twice")
        case .tooDeep:
            return scan.depth > self.limits.maxDepth ? .explained(.tooDeep) : .unexplained("it is not too deep")
        case .tooManyMembers:
            return scan.memberCount > self.limits.maxMembers
                ? .explained(.tooManyMembers) : .unexplained("it has not too many members")
        case .malformed:
            break
        }
        guard repairs < 3 else { return .unexplained("repairs do not help") }
        // Whatever Foundation forgave: without it, both must see the same.
        for (difference, repaired) in Self.repairs(of: document, scan: scan) {
            do throws(JSONParseError) {
                let ours = try JSONDocument(parsing: ByteBuffer(bytes: repaired), limits: self.limits).root
                var comparison = ValueComparison()
                if comparison.areEqual(ours, theirs) {
                    return .explained(difference)
                }
            } catch {
                let further = self.explanation(
                    of: error,
                    document: repaired,
                    theirs: theirs,
                    repairs: repairs + 1
                )
                if case .explained = further { return further }
            }
        }
        return .unexplained("only we refuse it: \(error.reason) at \(error.offset)")
    }

    private static func repairs(of document: [UInt8], scan: StructureScan) -> [(KnownDifference, [UInt8])] {
        var repairs: [(KnownDifference, [UInt8])] = []
        if document.starts(with: [0xEF, 0xBB, 0xBF]) {
            repairs.append((.byteOrderMark, Array(document.dropFirst(3))))
        }
        if !scan.trailingCommas.isEmpty {
            let commas = Set(scan.trailingCommas)
            repairs.append((.trailingComma, document.indices.filter { !commas.contains($0) }.map { document[$0] }))
        }
        // Outside strings JSON is ASCII, so the wider encodings show zeros or their marks right at the start.
        if document.prefix(4).contains(0) || document.starts(with: [0xFE, 0xFF]) || document.starts(with: [0xFF, 0xFE])
        {
            let encodings: [String.Encoding] = [
                .utf16LittleEndian, .utf16BigEndian, .utf32LittleEndian, .utf32BigEndian,
            ]
            for encoding in encodings {
                guard let text = String(data: Data(document), encoding: encoding) else { continue }
                let scalars = text.unicodeScalars
                let hasMark = scalars.first == "\u{FEFF}"
                repairs.append((.otherEncoding, Array(String(hasMark ? scalars.dropFirst() : scalars[...]).utf8)))
            }
        }
        return repairs
    }

    private static func hasNumberOverflow(_ value: JSONValue) -> Bool {
        if let number = value.number {
            return Double(number.text)?.isInfinite ?? false
        }
        if let members = value.members {
            return members.contains { Self.hasNumberOverflow($0.value) }
        }
        if let elements = value.elements {
            return elements.contains { Self.hasNumberOverflow($0) }
        }
        return false
    }
}

/// The ways in which this reader and Foundation's may differ; there must be no others.
enum KnownDifference: String, CaseIterable {
    /// We refuse two members of one name in an object; Foundation keeps one of them.
    case duplicateNames
    /// We refuse deep nesting within Foundation's own bound of 512 levels.
    case tooDeep
    case tooManyMembers
    /// Foundation accepts a comma before a closing bracket.
    case trailingComma
    /// Foundation passes over a byte-order mark in front of UTF-8.
    case byteOrderMark
    /// Foundation reads UTF-16 and UTF-32.
    case otherEncoding
    /// Foundation refuses numbers that no `Double` can hold; we keep their text.
    case numberOverflow
    /// Foundation keeps one of two names that differ only in their Unicode normalisation, or in a U+FEFF it drops.
    case equivalentNames
    /// Foundation drops U+FEFF where a string, or a piece of one, starts with it.
    case byteOrderMarkInString
}

/// Compares a value of ours with what Foundation made of the same text.
struct ValueComparison {
    /// The differences met that are known.
    private(set) var differences: Set<KnownDifference> = []

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

/// Looks at a text without reading it as JSON: what nests, which names its objects have, where commas trail.
///
/// Means something only for texts that some JSON reader accepts. Written apart from the reader under test, and slow.
struct StructureScan {
    private(set) var depth = 0
    private(set) var memberCount = 0
    /// Whether an object has two members of the same name, code point by code point.
    private(set) var hasDuplicateNames = false
    /// Where commas stand right before a closing bracket.
    private(set) var trailingCommas: [Int] = []

    init(_ text: [UInt8]) {
        var names: [Set<[UInt16]>] = []
        // The last thing that is neither blank nor inside a string.
        var lastComma: Int?
        var lastString: Range<Int>?
        var position = 0
        while position < text.count {
            let byte = text[position]
            switch byte {
            case 0x20, 0x0A, 0x0D, 0x09:
                position += 1
                continue
            case UInt8(ascii: "\""):
                let end = Self.endOfString(text, from: position)
                lastString = position..<end
                lastComma = nil
                position = end
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                names.append([])
                self.depth = max(self.depth, names.count)
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                _ = names.popLast()
                if let lastComma { self.trailingCommas.append(lastComma) }
            case UInt8(ascii: ":"):
                self.memberCount += 1
                if let lastString, !names.isEmpty {
                    let isNew = names[names.count - 1].insert(Self.units(text[lastString])).inserted
                    self.hasDuplicateNames = self.hasDuplicateNames || !isNew
                }
            default:
                break
            }
            lastComma = byte == UInt8(ascii: ",") ? position : nil
            lastString = nil
            position += 1
        }
    }

    private static func endOfString(_ text: [UInt8], from start: Int) -> Int {
        var position = start + 1
        while position < text.count, text[position] != UInt8(ascii: "\"") {
            position += text[position] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(position + 1, text.count)
    }

    /// The UTF-16 code units of a string, escapes resolved: a surrogate escape is simply one of them.
    private static func units(_ literal: ArraySlice<UInt8>) -> [UInt16] {
        let raw = Array(String(decoding: literal.dropFirst().dropLast(), as: UTF8.self).utf16)
        var units: [UInt16] = []
        var position = 0
        while position < raw.count {
            guard raw[position] == 0x5C, position + 1 < raw.count else {
                units.append(raw[position])
                position += 1
                continue
            }
            let letter = Unicode.Scalar(raw[position + 1]).map { Character($0) }
            position += 2
            switch letter {
            case "b": units.append(8)
            case "f": units.append(12)
            case "n": units.append(10)
            case "r": units.append(13)
            case "t": units.append(9)
            case "u":
                let digits = String(decoding: raw[position..<min(position + 4, raw.count)], as: UTF16.self)
                units.append(UInt16(digits, radix: 16) ?? 0)
                position += 4
            default: units.append(raw[position - 1])
            }
        }
        return units
    }
}
