-- The C interface of a link end (../include/hodo_spacewire.h) in VHDL, by VHPIDIRECT.
package hodo_spacewire is
  constant NONE : integer := -1;
  constant EOP : natural := 256;
  constant EEP : natural := 257;
  constant RUN : natural := 5;
  constant ERROR_DISCONNECT : natural := 1;
  constant ERROR_PARITY : natural := 2;
  constant FAULT_PARITY : natural := 0;
  constant SENT_FCTS : natural := 1;
  constant SENT_DATA : natural := 2;
  constant SENT_EOPS : natural := 3;
  constant SENT_TIME_CODES : natural := 5;
  constant RECEIVED_FCTS : natural := 7;
  constant RECEIVED_DATA : natural := 8;
  constant RECEIVED_EOPS : natural := 9;
  constant RECEIVED_TIME_CODES : natural := 11;

  impure function spw_open(step_ps, divider, edition, room : integer) return integer;
  attribute foreign of spw_open : function is "VHPIDIRECT hodo_spw_open";
  impure function spw_close(link : integer) return integer;
  attribute foreign of spw_close : function is "VHPIDIRECT hodo_spw_close";
  impure function spw_step(link, data, strobe : integer) return integer;
  attribute foreign of spw_step : function is "VHPIDIRECT hodo_spw_step";
  impure function spw_push(link, nchar : integer) return integer;
  attribute foreign of spw_push : function is "VHPIDIRECT hodo_spw_push";
  impure function spw_to_send(link : integer) return integer;
  attribute foreign of spw_to_send : function is "VHPIDIRECT hodo_spw_to_send";
  impure function spw_pop(link : integer) return integer;
  attribute foreign of spw_pop : function is "VHPIDIRECT hodo_spw_pop";
  impure function spw_send_time_code(link, code : integer) return integer;
  attribute foreign of spw_send_time_code : function is "VHPIDIRECT hodo_spw_send_time_code";
  impure function spw_pop_time_code(link : integer) return integer;
  attribute foreign of spw_pop_time_code : function is "VHPIDIRECT hodo_spw_pop_time_code";
  impure function spw_state(link : integer) return integer;
  attribute foreign of spw_state : function is "VHPIDIRECT hodo_spw_state";
  impure function spw_pop_failure(link : integer) return integer;
  attribute foreign of spw_pop_failure : function is "VHPIDIRECT hodo_spw_pop_failure";
  impure function spw_inject(link, fault : integer) return integer;
  attribute foreign of spw_inject : function is "VHPIDIRECT hodo_spw_inject";
  impure function spw_count(link, which : integer) return integer;
  attribute foreign of spw_count : function is "VHPIDIRECT hodo_spw_count";
end package;

package body hodo_spacewire is
  -- The simulator calls the C functions; these bodies only complete the package.
  impure function spw_open(step_ps, divider, edition, room : integer) return integer is begin return NONE; end function;
  impure function spw_close(link : integer) return integer is begin return NONE; end function;
  impure function spw_step(link, data, strobe : integer) return integer is begin return 0; end function;
  impure function spw_push(link, nchar : integer) return integer is begin return NONE; end function;
  impure function spw_to_send(link : integer) return integer is begin return NONE; end function;
  impure function spw_pop(link : integer) return integer is begin return NONE; end function;
  impure function spw_send_time_code(link, code : integer) return integer is begin return NONE; end function;
  impure function spw_pop_time_code(link : integer) return integer is begin return NONE; end function;
  impure function spw_state(link : integer) return integer is begin return NONE; end function;
  impure function spw_pop_failure(link : integer) return integer is begin return NONE; end function;
  impure function spw_inject(link, fault : integer) return integer is begin return NONE; end function;
  impure function spw_count(link, which : integer) return integer is begin return NONE; end function;
end package body;
