/// What a checkpoint says of the chains of an export, held against them as they come, by rising writer.
///
/// Pure.
struct AuditExportClaims: Sendable {
    /// What is wrong, and where.
    typealias Failure = (place: AuditPosition, reason: String)

    /// The checkpoint's number.
    let number: Int
    private let heads: [Int: AuditCheckpoint.Head]
    private let lastWriter: Int
    private let settledWriter: Int
    private let settledDigest: [UInt8]
    private var settled = AuditSettledEnds()

    init(_ checkpoint: AuditCheckpoint) {
        self.number = checkpoint.number
        self.heads = Dictionary(checkpoint.heads.map { ($0.writer, $0) }, uniquingKeysWith: { first, _ in first })
        self.lastWriter = max(checkpoint.settledWriter, checkpoint.heads.map(\.writer).max() ?? 0)
        (self.settledWriter, self.settledDigest) = (checkpoint.settledWriter, checkpoint.settledDigest)
    }

    /// Takes the next writer's end.
    ///
    /// - Returns: what is wrong with it, or `nil`.
    mutating func failure(of head: AuditHead) -> Failure? {
        func failure(_ sequence: Int, _ reason: String) -> Failure {
            (AuditPosition(writer: head.writer, sequence: max(sequence, 1)), reason)
        }
        let name = "checkpoint \(self.number)"
        if head.writer <= self.settledWriter {
            self.settled.append(head)
            guard head.writer == self.settledWriter, self.settled.digest != self.settledDigest else { return nil }
            return failure(head.sequence, "\(name) has another end of this chain or of one before")
        }
        guard let claim = self.heads[head.writer] else { return nil }
        if head.sequence < claim.sequence {
            return failure(head.sequence + 1, "the record is missing, \(name) has it")
        }
        if claim.state != .open, (head.sequence, head.state) != (claim.sequence, claim.state) {
            return failure(claim.sequence, "the chain had ended here, says \(name)")
        }
        return self.reason(against: head.chain).map { failure(head.sequence, $0) }
    }

    /// Why a chain can't have come to this place with this hash, or `nil`.
    func reason(against chain: AuditChain) -> String? {
        guard let claim = self.heads[chain.writer], claim.sequence == chain.sequence, claim.hash != chain.hash else {
            return nil
        }
        return "checkpoint \(self.number) has another record in its place"
    }

    /// Which writer should have followed the last, or `nil`.
    func failure(after writer: Int) -> Failure? {
        guard writer < self.lastWriter else { return nil }
        let place = AuditPosition(writer: writer + 1, sequence: 1)
        return (place, "the writer is missing, checkpoint \(self.number) has it")
    }
}
