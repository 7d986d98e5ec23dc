import NIOCore
import NIOSSL

extension ChannelHandlerContext {
    /// Closes the transport without asking the peer to agree on the end of TLS.
    func closeAtOnce() {
        if let encryption = try? self.pipeline.syncOperations.context(handlerType: NIOSSLClientHandler.self) {
            encryption.close(promise: nil)
        } else {
            self.close(promise: nil)
        }
    }
}
