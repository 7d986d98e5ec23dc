import FCMModel

/// Progress as bytes: numbers have four bytes, the highest first, and each text is preceded by its length.
extension SendProgress {
    /// Rises when the layout changes.
    private static let version = 1
    /// What stands for an absent text in place of its length.
    private static let absent = Int(UInt32.max)

    /// The bytes.
    var bytes: [UInt8] {
        var writer = Writer()
        writer.put(Self.version)
        writer.put(self.started.count)
        for place in self.started.sorted() { writer.put(place) }
        writer.put(self.outcomes.count)
        for (place, outcome) in self.outcomes.sorted(by: { $0.key < $1.key }) {
            writer.put(place)
            switch outcome {
            case .accepted(let acceptance):
                writer.put(nil)
                writer.put(acceptance.messageID)
                writer.put(acceptance.replacementToken)
            case .rejected(let rejection):
                writer.put(rejection.code.rawValue)
                writer.put(rejection.retryAfter ?? Self.absent)
                writer.put(rejection.limitedBy?.rawValue)
                writer.put(rejection.legacyName?.rawValue)
            }
        }
        return writer.bytes
    }

    /// Progress of a send to so many recipients; `nil` for bytes that no progress has.
    init?(_ bytes: [UInt8], count: Int) {
        var reader = Reader(rest: bytes[...])
        guard reader.number() == Self.version, let startedCount = reader.number() else { return nil }
        var started: Set<Int> = []
        for _ in 0..<startedCount {
            guard let place = reader.number() else { return nil }
            started.insert(place)
        }
        guard let outcomeCount = reader.number() else { return nil }
        var outcomes: [Int: RecipientOutcome] = [:]
        for _ in 0..<outcomeCount {
            guard let place = reader.number(), let outcome = reader.outcome() else { return nil }
            outcomes[place] = outcome
        }
        guard reader.rest.isEmpty else { return nil }
        self.init(count: count, started: started, outcomes: outcomes)
    }

    private struct Writer {
        var bytes: [UInt8] = []

        mutating func put(_ number: Int) {
            let number = UInt32(clamping: number)
            for shift in [24, 16, 8, 0] as [UInt32] { self.bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
        }

        mutating func put(_ text: String?) {
            guard let text else { return self.put(SendProgress.absent) }
            self.put(text.utf8.count)
            self.bytes.append(contentsOf: text.utf8)
        }
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>

        mutating func number() -> Int? {
            guard self.rest.count >= 4 else { return nil }
            defer { self.rest = self.rest.dropFirst(4) }
            return self.rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        }

        /// A text that may be absent; the outer `nil` is for bytes that hold none.
        mutating func text() -> String?? {
            guard let length = self.number() else { return nil }
            if length == SendProgress.absent { return .some(nil) }
            guard length <= self.rest.count else { return nil }
            defer { self.rest = self.rest.dropFirst(length) }
            return String(validating: self.rest.prefix(length), as: UTF8.self)
        }

        mutating func outcome() -> RecipientOutcome? {
            guard let code = self.text() else { return nil }
            guard let code else {
                guard let messageID = self.text() ?? nil, let replacement = self.text() else { return nil }
                return .accepted(Acceptance(messageID: messageID, replacementToken: replacement))
            }
            guard let code = OutcomeCode(rawValue: code), let retryAfter = self.number(),
                let limitedBy = self.text(), let legacyName = self.text()
            else { return nil }
            return .rejected(
                Rejection(
                    code: code,
                    retryAfter: retryAfter == SendProgress.absent ? nil : retryAfter,
                    limitedBy: limitedBy.flatMap(Rejection.LimitSource.init(rawValue:)),
                    legacyName: legacyName.flatMap(LegacyErrorName.init(rawValue:))
                )
            )
        }
    }
}
