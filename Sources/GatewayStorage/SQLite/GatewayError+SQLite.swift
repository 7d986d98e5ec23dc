import GRDB
import GatewayCore

extension GatewayError {
    /// What an error of the database means to the gateway; one of the gateway's own passes unchanged.
    init(translating error: any Error) {
        if let error = error as? GatewayError {
            self = error
            return
        }
        if error is CancellationError {
            self.init(.cancelled, "The operation was cancelled", cause: error)
            return
        }
        if error is DamagedValue {
            self.init(.storeUnavailable, "The store holds a value that this gateway does not understand", cause: error)
            return
        }
        let message: String
        switch (error as? DatabaseError)?.resultCode {
        case .SQLITE_FULL: message = "The store's disk is full"
        case .SQLITE_IOERR: message = "The store's disk reports an error"
        case .SQLITE_READONLY, .SQLITE_PERM: message = "The store can't be written"
        case .SQLITE_BUSY, .SQLITE_LOCKED: message = "The store is busy"
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: message = "The store's file is damaged or no database"
        case .SQLITE_CANTOPEN: message = "The store's file can't be opened"
        default: message = "The store does not answer as it should"
        }
        self.init(.storeUnavailable, message, cause: error)
    }
}
