import GatewayAudit
import GatewayTestKit
import Testing

/// What somebody with access to the store, but not to the audit key, could do to it.
///
/// The store holds three writers: five records closed, six recovered, four closed.
struct Tampering: Sendable, CustomTestStringConvertible {
    let name: String
    /// Where it must be noticed.
    let place: AuditPosition
    let apply: @Sendable (inout InMemoryAuditStore.Contents) -> Void

    var testDescription: String { self.name }

    init(
        _ name: String,
        noticedAt place: (writer: Int, sequence: Int),
        _ apply: @escaping @Sendable (inout InMemoryAuditStore.Contents) -> Void
    ) {
        self.name = name
        self.place = AuditPosition(writer: place.writer, sequence: place.sequence)
        self.apply = apply
    }

    static let all = Self.deletions + Self.moves + Self.insertions + Self.headChanges

    private static let deletions = [
        Tampering("delete the very first record", noticedAt: (1, 1)) { $0.delete(1, 1) },
        Tampering("delete the first of a chain", noticedAt: (2, 1)) { $0.delete(2, 1) },
        Tampering("delete from the middle", noticedAt: (2, 3)) { $0.delete(2, 3) },
        Tampering("delete the last of a chain", noticedAt: (2, 6)) { $0.delete(2, 6) },
        Tampering("delete the very last record", noticedAt: (3, 4)) { $0.delete(3, 4) },
        Tampering("delete all records of a writer", noticedAt: (2, 1)) { $0.records.removeAll { $0.writer == 2 } },
        Tampering("drop the first writer", noticedAt: (1, 1)) { $0.drop(1) },
        Tampering("drop a writer", noticedAt: (2, 1)) { $0.drop(2) },
        Tampering("delete and close the gap", noticedAt: (2, 3)) { contents in
            contents.delete(2, 3)
            for index in contents.records.indices where contents.records[index].writer == 2 {
                if contents.records[index].sequence > 3 { contents.records[index].sequence -= 1 }
            }
        },
    ]

    private static let moves = [
        Tampering("swap neighbours", noticedAt: (2, 2)) { $0.swap((2, 2), (2, 3)) },
        Tampering("swap the first with the last", noticedAt: (1, 1)) { $0.swap((1, 1), (1, 5)) },
        Tampering("swap between writers", noticedAt: (1, 2)) { $0.swap((1, 2), (3, 2)) },
        Tampering("repeat a record in the next one's place", noticedAt: (2, 4)) { contents in
            guard let record = contents.records.first(where: { ($0.writer, $0.sequence) == (2, 3) }) else { return }
            contents.change(2, 4) { $0.record = record.record }
        },
        Tampering("flip a bit of a hash", noticedAt: (3, 2)) { $0.change(3, 2) { $0.hash[0] ^= 1 } },
        Tampering("flip a bit of the last hash", noticedAt: (3, 4)) { $0.change(3, 4) { $0.hash[31] ^= 0x80 } },
    ]

    private static let insertions = [
        Tampering("insert at the tail", noticedAt: (2, 7)) { contents in
            contents.records.append(
                ChainedAuditRecord(
                    writer: 2,
                    sequence: 7,
                    entry: AuditEntry(.sample()),
                    hash: Array(repeating: 1, count: 32)
                )
            )
        },
        Tampering("insert at the tail with the right hash", noticedAt: (2, 7)) { contents in
            guard var chain = contents.heads.first(where: { $0.writer == 2 })?.chain else { return }
            contents.records.append(chain.append(.sample()))
        },
        Tampering("insert in the middle and number anew", noticedAt: (2, 3)) { contents in
            for index in contents.records.indices where contents.records[index].writer == 2 {
                if contents.records[index].sequence >= 3 { contents.records[index].sequence += 1 }
            }
            contents.records.append(ChainedAuditRecord(writer: 2, sequence: 3, entry: AuditEntry(.sample()), hash: []))
        },
        Tampering("add records of an unknown writer", noticedAt: (9, 1)) { contents in
            var chain = AuditChain(writer: 9)
            contents.records.append(chain.append(.sample()))
        },
        Tampering("add a writer with a head of no key", noticedAt: (4, 1)) { contents in
            var chain = AuditChain(writer: 4)
            contents.records.append(chain.append(.sample()))
            contents.heads.append(AuditSealer(auditKey: .sample("forger")).head(of: chain, state: .closed))
        },
        Tampering("add a writer further on", noticedAt: (4, 1)) { contents in
            var chain = AuditChain(writer: 5)
            contents.records.append(chain.append(.sample()))
            contents.heads.append(AuditSealer(auditKey: .sample("forger")).head(of: chain, state: .closed))
        },
    ]

    private static let headChanges = [
        Tampering("drop a head", noticedAt: (2, 1)) { $0.heads.removeAll { $0.writer == 2 } },
        Tampering("set a head back", noticedAt: (2, 5)) { $0.changeHead(2) { $0.sequence = 5 } },
        Tampering("set a head back and drop the tail", noticedAt: (2, 5)) { contents in
            contents.delete(2, 6)
            let hash = contents.records.first { ($0.writer, $0.sequence) == (2, 5) }?.hash
            contents.changeHead(2) {
                $0 = AuditHead(writer: 2, sequence: 5, hash: hash ?? [], state: .closed, seal: $0.seal)
            }
        },
        Tampering("set a head forward", noticedAt: (2, 7)) { $0.changeHead(2) { $0.sequence = 7 } },
        Tampering("change a head's hash", noticedAt: (2, 6)) { $0.changeHead(2) { $0.hash[5] ^= 4 } },
        Tampering("change a head's state", noticedAt: (2, 6)) { $0.changeHead(2) { $0.state = .closed } },
        Tampering("change a head's seal", noticedAt: (2, 6)) { $0.changeHead(2) { $0.seal[5] ^= 4 } },
        Tampering("rewrite a chain and its head", noticedAt: (2, 6)) { contents in
            var chain = AuditChain(writer: 2)
            contents.records.removeAll { $0.writer == 2 }
            for _ in 0..<6 { contents.records.append(chain.append(.sample())) }
            contents.changeHead(2) {
                $0 = AuditHead(writer: 2, sequence: 6, hash: chain.hash, state: $0.state, seal: $0.seal)
            }
        },
    ]
}

extension InMemoryAuditStore.Contents {
    mutating func delete(_ writer: Int, _ sequence: Int) {
        self.records.removeAll { ($0.writer, $0.sequence) == (writer, sequence) }
    }

    fileprivate mutating func drop(_ writer: Int) {
        self.records.removeAll { $0.writer == writer }
        self.heads.removeAll { $0.writer == writer }
    }

    /// Changes one stored record.
    mutating func change(_ writer: Int, _ sequence: Int, _ body: (inout ChainedAuditRecord) -> Void) {
        for index in self.records.indices
        where (self.records[index].writer, self.records[index].sequence) == (writer, sequence) {
            body(&self.records[index])
        }
    }

    fileprivate mutating func changeHead(_ writer: Int, _ body: (inout AuditHead) -> Void) {
        for index in self.heads.indices where self.heads[index].writer == writer {
            body(&self.heads[index])
        }
    }

    /// Exchanges what stands in two places; the places stay.
    mutating func swap(_ first: (Int, Int), _ second: (Int, Int)) {
        guard let one = self.records.firstIndex(where: { ($0.writer, $0.sequence) == first }),
            let other = self.records.firstIndex(where: { ($0.writer, $0.sequence) == second })
        else { return }
        self.records.swapAt(one, other)
        (self.records[one].writer, self.records[one].sequence) = first
        (self.records[other].writer, self.records[other].sequence) = second
    }
}
