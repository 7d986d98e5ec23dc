import Crypto

/// The filter of a list of the audit.
package struct AuditQuery: Sendable, Hashable {
    /// Seals the cursor of a list, since places count the records of all tenants.
    ///
    /// A cursor is bound to the list that it continues, of the tenant of a uid or of operators, and always as long as
    /// any other.
    package struct CursorSealer: Sendable {
        private let key: SymmetricKey

        package init(auditKey: Secret) {
            self.key = auditKey.symmetricKey.derived(for: "fcm-gateway audit cursor 1")
        }

        /// Seals a place; `nil` when the cryptographic library fails, which it does not for keys of 256 bits.
        package func seal(_ cursor: AuditQuery.Cursor, for uid: UInt64?) -> [UInt8]? {
            var place: [UInt8] = []
            for number in [cursor.time.microseconds, Int64(cursor.position.writer), Int64(cursor.position.sequence)] {
                place.append(bigEndian: UInt64(bitPattern: number))
            }
            return try? self.key.seal(place, for: Self.reader(uid))
        }

        /// Opens a place; `nil` for bytes that are none of this gateway's cursors, or another reader's.
        package func open(_ sealed: [UInt8], for uid: UInt64?) -> AuditQuery.Cursor? {
            guard let place = self.key.open(sealed, for: Self.reader(uid)), place.count == 24 else { return nil }
            let numbers = [0, 8, 16]
                .map { start in
                    Int64(bitPattern: place[start..<(start + 8)].reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
                }
            return AuditQuery.Cursor(
                time: Timestamp(microseconds: numbers[0]),
                position: AuditChain.Position(writer: Int(numbers[1]), sequence: Int(numbers[2]))
            )
        }

        private static func reader(_ uid: UInt64?) -> String { uid.map { "tenant \($0)" } ?? "operator" }
    }

    /// Some of the records that a query found.
    package struct Page: Sendable, Hashable {
        package var records: [ChainedAuditRecord]
        /// The cursor of the next page; `nil` at the end.
        package var next: AuditQuery.Cursor?

        package init(records: [ChainedAuditRecord], next: AuditQuery.Cursor?) {
            (self.records, self.next) = (records, next)
        }
    }

    /// The place after which a list of the audit continues. Lists are by falling time, and by place within the same
    /// time.
    package struct Cursor: Sendable, Hashable {
        package var time: Timestamp
        package var position: AuditChain.Position

        package init(time: Timestamp, position: AuditChain.Position) {
            (self.time, self.position) = (time, position)
        }

        package init(_ record: ChainedAuditRecord) {
            self.init(time: record.entry.time, position: record.position)
        }
    }

    package var tenant: String?
    /// Only records of the tenant of this name that has this uid, for whom the list is; `nil` for operators' lists.
    package var tenantUID: UInt64?
    /// Only records at or after this moment.
    package var from: Timestamp?
    /// Only records before this moment.
    package var to: Timestamp?
    package var action: String?
    package var outcome: AuditRecord.Outcome?
    /// Only this code of a refusal or failure, of the whole or of one recipient.
    package var code: String?
    package var principal: String?
    package var requestID: String?
    package var target: Pseudonym?
    package var messageID: String?
    package var limit: Int
    /// Only records older than this place.
    package var before: Cursor?

    package init(limit: Int) {
        self.limit = limit
    }

    /// True if a record matches the query in everything but its tenant, time and place.
    package func matches(_ record: AuditRecord) -> Bool {
        if let action = self.action, record.action != action { return false }
        if let outcome = self.outcome, record.outcome != outcome { return false }
        if let code = self.code, record.code != code, !record.results.contains(where: { $0.code == code }) {
            return false
        }
        if let principal = self.principal, record.principal != principal, record.principal != "key:\(principal)" {
            return false
        }
        if let requestID = self.requestID, record.requestID != requestID { return false }
        if let messageID = self.messageID, record.messageID != messageID { return false }
        guard let target = self.target else { return true }
        return stride(from: 0, to: record.targets.count, by: Pseudonym.byteCount)
            .contains { Pseudonym(bytes: record.targets[$0...].prefix(Pseudonym.byteCount)) == target }
    }
}

/// Finds intents that no outcome followed: what was about to be done when a process was killed.
///
/// Pure: it is shown the records in the order in which they were written. It remembers no more than is open.
package struct AuditIntents: Sendable {
    private struct Key: Hashable {
        let tenant: String?
        let action: String
        /// The message's id, or the request's where there is no message.
        let id: String
    }

    private var open: [Key: [ChainedAuditRecord]] = [:]

    package init() {}

    /// Takes a record: an intent, or the outcome of one.
    package mutating func take(_ chained: ChainedAuditRecord) {
        let record = chained.record
        let key = Key(tenant: record.tenant, action: record.action, id: record.messageID ?? record.requestID)
        if record.outcome == .intent {
            self.open[key, default: []].append(chained)
        } else if var intents = self.open[key] {
            // A request's id may come twice; each outcome ends one intent.
            intents.removeFirst()
            self.open[key] = intents.isEmpty ? nil : intents
        }
    }

    /// The intents without an outcome, oldest first.
    package var withoutOutcome: [ChainedAuditRecord] {
        self.open.values.joined().sorted { ($0.writer, $0.sequence) < ($1.writer, $1.sequence) }
    }
}
