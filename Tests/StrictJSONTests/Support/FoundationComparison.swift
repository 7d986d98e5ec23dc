import Foundation
import NIOCore
import StrictJSON

/// Reads one text with both readers and explains how they differ.
struct FoundationComparison {
    /// What came out.
    enum Verdict {
        /// Both accept with the same values, or both refuse.
        case agree(isAccepted: Bool)
        /// They differ in a known way, which an independent look at the text confirms.
        case explained(KnownDifference)
        /// They differ, and nobody knows why.
        case unexplained(String)
    }

    /// The bounds our reader is given.
    let limits: JSONLimits

    /// Compares.
    ///
    /// - Parameter document: The text.
    /// - Returns: The verdict.
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
