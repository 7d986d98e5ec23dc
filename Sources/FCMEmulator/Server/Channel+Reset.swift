import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension Channel {
    /// Closes the connection so that the peer sees a reset instead of an orderly end.
    ///
    /// A socket that must not linger discards what is unsent and sends RST on close.
    func resetConnection() async {
        if let socket = self as? any SocketOptionProvider {
            try? await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        }
        try? await self.close().get()
    }
}
