import FCMModel
import NIOCore
import StrictJSON

/// What a refusal by v1 says that only an operator can mend.
struct V1Complaint {
    /// Google's word for the cause, such as `SERVICE_DISABLED`.
    private(set) var reason: String?
    /// Google's own sentence, cut where it is long.
    private(set) var message: String?

    init(_ body: ByteBuffer) {
        guard let error = (try? JSONDocument(parsing: body))?.root["error"] else { return }
        self.message = error["message"]?.string.map(AnswerBounds.beginning)
        guard let details = error["details"]?.elements else { return }
        for detail in details where detail["@type"]?.string?.hasSuffix("google.rpc.ErrorInfo") == true {
            self.reason = detail["reason"]?.string
        }
    }
}
