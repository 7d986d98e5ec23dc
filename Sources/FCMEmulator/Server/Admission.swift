/// How the handling of a request begins.
enum Admission {
    /// No fault: the request is handled and recorded in one step.
    case handle
    /// A fault is played for the journal entry of this id.
    case fault(FaultAction, id: Int)
    /// A fault holds back the request with the journal entry of this id.
    case hold(FaultAction, id: Int, Hold)
}
