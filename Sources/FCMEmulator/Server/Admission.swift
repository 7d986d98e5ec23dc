/// How the handling of a request begins.
enum Admission {
    /// No fault: the request is handled and recorded in one step.
    case handle
    /// A fault is played for the journal entry of this id.
    case fault(FaultAction, id: Int)
    /// A fault holds the request back until the stream ends.
    case hold(FaultAction, id: Int, release: AsyncStream<Void>)
}
