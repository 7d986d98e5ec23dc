/// What a second sink has of a store's audit, to be compared with the store.
package struct AuditWitness: Sendable, Hashable {
    /// What stood at places of chains, by writer; by rising place.
    package var landmarks: [Int: [AuditLandmark]]
    /// The checkpoints' digests, by number.
    package var checkpoints: [Int: [UInt8]]

    /// The checkpoint that the sink was known to hold when it began to be read; 0 for none.
    package var required: Int

    /// What a sink has; without anything, there is none to compare with.
    package init(landmarks: [Int: [AuditLandmark]] = [:], checkpoints: [Int: [UInt8]] = [:], required: Int = 0) {
        (self.landmarks, self.checkpoints, self.required) = (landmarks, checkpoints, required)
    }
}
