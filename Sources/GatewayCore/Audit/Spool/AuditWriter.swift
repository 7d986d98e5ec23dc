/// What the writer's task alone knows.
struct AuditWriter: Sendable {
    /// Where records go, and how far they got.
    var course: AuditCourse
    /// The end of the spool.
    var end = AuditSpool.End()
    /// How far the store was given the spool's content.
    var cursor = AuditSpoolCursor()
    /// Whether the spool could not be emptied, so that nothing can follow in it.
    var isSpoolStuck = false
    /// Commits up to this number wait for the errand under way.
    var awaited = 0

    /// A writer whose chain is in the store.
    init(chain: AuditChain) {
        self.course = AuditCourse(chain: chain)
    }
}
