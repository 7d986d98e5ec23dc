/// Follows a list of audit records that is always read newest first.
///
/// Pure: it only remembers which records it gave out, so that none is printed twice.
struct AuditTrail {
    /// How many records are remembered; enough for the pages that one poll reads again.
    static let maxRemembered = 20_000

    /// What tells one record from another.
    private enum Identity: Hashable {
        /// The writer's name and the record's number in its chain.
        case chained(writer: String, seq: Int)
        /// The whole record, where it has no number.
        case whole(String)
    }

    private var seen: Set<Identity> = []
    private var order: [Identity] = []

    /// Creates a trail that has given out nothing.
    init() {}

    /// Takes a page and gives out what is new in it.
    ///
    /// - Parameter page: Records, newest first.
    /// - Returns: The records not given out before, oldest first.
    mutating func unseen(_ page: [JSONValue]) -> [JSONValue] {
        var fresh: [JSONValue] = []
        for record in page.reversed() {
            let identity = Self.identity(record)
            guard self.seen.insert(identity).inserted else { continue }
            self.order.append(identity)
            fresh.append(record)
        }
        if self.order.count > Self.maxRemembered {
            let surplus = self.order.count - Self.maxRemembered
            self.seen.subtract(self.order.prefix(surplus))
            self.order.removeFirst(surplus)
        }
        return fresh
    }

    /// The members a table shows: the usual ones that occur, or all when none does.
    static func columns(of records: [JSONValue]) -> [String] {
        let usual = [
            "time", "seq", "tenant", "principal", "action", "outcome", "code", "target_kind", "targets",
            "message", "request_id",
        ]
        let names = Set(records.flatMap { Self.names($0) })
        let columns = usual.filter { names.contains($0) }
        return columns.isEmpty ? names.sorted() : columns
    }

    /// A record on one line: the time first, then every other member that has a value, by name.
    static func line(_ record: JSONValue) -> String {
        let members = Self.names(record).filter { $0 != "time" }.sorted()
            .compactMap { name -> String? in
                guard let cell = record[name]?.cell, !cell.isEmpty else { return nil }
                return "\(name)=\(cell)"
            }
        return ([record["time"]?.cell].compactMap(\.self) + members).joined(separator: " ")
    }

    private static func names(_ record: JSONValue) -> [String] {
        guard case .object(let members) = record else { return [] }
        return Array(members.keys)
    }

    private static func identity(_ record: JSONValue) -> Identity {
        if let writer = record["writer"]?.cell, let seq = record["seq"]?.wholeNumber {
            return .chained(writer: writer, seq: seq)
        }
        let text = (try? record.encoded()).map { String(decoding: $0, as: UTF8.self) }
        return .whole(text ?? record.cell)
    }
}
