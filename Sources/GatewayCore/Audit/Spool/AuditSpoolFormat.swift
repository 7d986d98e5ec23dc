/// What a spool looks like.
enum AuditSpoolFormat {
    /// How every spool begins.
    static let magic = Array("fcm-gateway audit spool 1\n".utf8)
    /// Random bytes behind it, by which no batch of one spool can pass for one of another.
    static let nonceByteCount = 16
    /// Everything before the first batch.
    static let headByteCount = magic.count + nonceByteCount + AuditSpoolSealer.byteCount
    /// The bytes at which a batch is full; the last record may reach beyond it.
    static let batchBytes = 1 << 20
    /// The bound on a batch, as a reader sees it.
    static let maxBatchBytes = 1 << 26
}
