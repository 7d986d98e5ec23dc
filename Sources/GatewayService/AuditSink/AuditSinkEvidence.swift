import GatewayCore

/// What a sink has that a store can be compared with: no more of it than a store keeps, however old the sink is.
struct AuditSinkEvidence: Sendable {
    /// A place of a chain, and the checkpoint that is the first to tell of it.
    private struct Place: Sendable {
        var checkpoint: Int
        var landmark: AuditLandmark
    }

    private var digests: [Int: [UInt8]] = [:]
    private var places: [Int: [Place]] = [:]
    /// The highest number of a checkpoint; 0 for none.
    private(set) var latest = 0

    /// No evidence.
    init() {}

    /// How much is kept, in checkpoints and places.
    var count: Int { self.digests.count + self.places.values.reduce(0) { $0 + $1.count } }

    /// A checkpoint's digest; `nil` for one that is not there, or that no store keeps any more.
    func digest(of number: Int) -> [UInt8]? { self.digests[number] }

    /// Takes a checkpoint in, and forgets what a store that ends with it does not keep.
    ///
    /// The last place of each chain is always kept: it vouches for all before it.
    mutating func add(_ checkpoint: AuditCheckpoint, digest: [UInt8]) {
        self.latest = max(self.latest, checkpoint.number)
        self.digests[checkpoint.number] = digest
        for head in checkpoint.heads {
            let landmark = AuditLandmark(sequence: head.sequence, hash: head.hash, source: .sink)
            guard self.places[head.writer]?.last?.landmark != landmark else { continue }
            self.places[head.writer, default: []].append(Place(checkpoint: checkpoint.number, landmark: landmark))
        }
        guard checkpoint.number.isMultiple(of: AuditCheckpoint.anchorInterval) else { return }
        self.digests = self.digests.filter { checkpoint.keeps($0.key) }
        self.places = self.places.mapValues { places in
            places.dropLast().filter { checkpoint.keeps($0.checkpoint) } + places.suffix(1)
        }
    }

    /// In the form that a store is compared with.
    var witness: AuditWitness {
        AuditWitness(landmarks: self.places.mapValues { $0.map(\.landmark) }, checkpoints: self.digests)
    }
}
